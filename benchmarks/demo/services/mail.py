"""The mailbox."""

from benchmarks.demo import population
from benchmarks.demo.world import Json, World

PAGE = 10
HEADER = "SELECT mail_id, sender, recipient, day, subject, substr(body, 1, 400) AS starts FROM mails"


class Mail:
    """The mail service."""

    def __init__(self, world: World) -> None:
        self.world = world

    def list_mail(self, folder: str = "inbox", page: int = 1, token: str = "") -> Json:
        """List the mails of a folder (inbox, sent or archive), newest first, ten on a page."""
        self.world.require(token)
        mails = self.world.rows(f"{HEADER} WHERE folder = :folder ORDER BY day DESC, mail_id", folder=folder)
        shown = mails[(page - 1) * PAGE : page * PAGE]
        return {"folder": folder, "page": page, "pages": -(-len(mails) // PAGE), "mails": shown}

    def search_mail(self, query: str, token: str = "") -> Json:
        """Find mails that hold the query in sender, subject or body; the best ten, sender and subject before body."""
        self.world.require(token)
        found = self.world.rows(
            f"{HEADER} WHERE sender || ' ' || subject || ' ' || body LIKE :like "
            "ORDER BY sender || ' ' || subject LIKE :like DESC, day DESC, mail_id",
            like=f"%{query}%",
        )
        return {"query": query, "found": len(found), "mails": found[:PAGE]}

    def read_mail(self, mail_id: str, token: str = "") -> Json:
        """Show a whole mail."""
        self.world.require(token)
        return self.world.row(
            f"There is no mail {mail_id}.",
            "SELECT mail_id, folder, sender, recipient, day, subject, body FROM mails WHERE mail_id = :m",
            m=mail_id,
        )

    def send_mail(self, to: str, subject: str, body: str, token: str = "") -> Json:
        """Send a mail; one that was sent today with the same subject to the same person is not sent twice."""
        self.world.require(token)
        same = "folder = 'sent' AND recipient = :to AND subject = :subject AND day = :day"
        sent = f"SELECT mail_id, recipient, subject FROM mails WHERE {same}"
        if not self.world.rows(sent, to=to, subject=subject, day=population.TODAY):
            self.world.insert(
                "mails",
                {
                    "mail_id": self.world.issue("m_", 9),
                    "folder": "sent",
                    "sender": self.world.rows("SELECT email FROM account")[0]["email"],
                    "recipient": to,
                    "day": population.TODAY,
                    "subject": subject,
                    "body": body,
                },
            )
        return {"status": "sent"} | self.world.rows(sent, to=to, subject=subject, day=population.TODAY)[0]

    def archive_mail(self, mail_id: str, token: str = "") -> Json:
        """Move a mail out of the inbox."""
        self.world.require(token)
        mail = self.read_mail(mail_id, token)
        self.world.change("UPDATE mails SET folder = 'archive' WHERE mail_id = :m", m=mail_id)
        return {"status": "archived", "mail_id": mail_id, "subject": mail["subject"]}

    def unsubscribe(self, mail_id: str, token: str = "") -> Json:
        """Stop the newsletter that a mail belongs to."""
        self.world.require(token)
        sender = self.read_mail(mail_id, token)["sender"]
        self.world.change("INSERT OR IGNORE INTO unsubscribed VALUES (:sender)", sender=sender)
        return {"newsletter": sender, "status": "unsubscribed"}

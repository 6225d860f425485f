"""Signing in, and the account itself."""

import json

from benchmarks.demo import population
from benchmarks.demo.world import TOKEN_LIFETIME, Json, Refused, World

TOKEN_ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


class Accounts:
    """The account service."""

    def __init__(self, world: World) -> None:
        self.world = world

    def sign_in(self, email: str, password: str) -> Json:
        """Sign in with email and password; returns the token that the other services ask for."""
        account = self.world.rows("SELECT name FROM account WHERE email = :e AND password = :p", e=email, p=password)
        if not account:
            raise Refused("wrong_credentials", "No account has this email and password.")
        token = self.world.issue("tk_", 32, TOKEN_ALPHABET)
        self.world.insert("sessions", {"token": token, "opened": self.world.minute})
        return {"token": token, "signed_in_as": account[0]["name"], "valid_minutes": TOKEN_LIFETIME}

    def sign_out(self, token: str = "") -> Json:
        """End the session of this token."""
        self.world.require(token)
        self.world.change("DELETE FROM sessions WHERE token = :token", token=token)
        return {"status": "signed_out"}

    def list_sessions(self, token: str = "") -> Json:
        """List the open sessions and their age in minutes."""
        self.world.require(token)
        sessions = self.world.rows("SELECT substr(token, 1, 6) AS starts, opened FROM sessions ORDER BY opened")
        return {"sessions": [{"starts": s["starts"], "minutes": self.world.minute - s["opened"]} for s in sessions]}

    def account_profile(self, token: str = "") -> Json:
        """Show name, email, phone and settings of the account."""
        self.world.require(token)
        return self.world.rows("SELECT name, email, phone, language, member_since FROM account")[0]

    def recent_activity(self, token: str = "") -> Json:
        """List what was changed on the account lately, newest first, at most thirty entries."""
        self.world.require(token)
        entries = self.world.rows("SELECT minute, entry FROM activity ORDER BY rowid DESC LIMIT 30")
        return {"activity": [{"minute": row["minute"]} | json.loads(row["entry"]) for row in entries]}

    def set_language(self, language: str, token: str = "") -> Json:
        """Choose the language of the account's pages and mails."""
        self.world.require(token)
        self.world.change("UPDATE account SET language = :language", language=language)
        return {"status": "saved", "language": language}

    def request_phone_change(self, phone: str, token: str = "") -> Json:
        """Ask for a new phone number; a confirmation code goes to the account's mailbox."""
        self.world.require(token)
        confirmation = self.world.issue("", 6, "0123456789")
        self.world.change("UPDATE account SET pending_phone = :phone, phone_code = :c", phone=phone, c=confirmation)
        mail_id = self.world.issue("m_", 9)
        self.world.insert(
            "mails",
            {
                "mail_id": mail_id,
                "folder": "inbox",
                "sender": "Account service",
                "recipient": self.world.rows("SELECT email FROM account")[0]["email"],
                "day": population.TODAY,
                "subject": f"Confirm {phone}",
                "body": f"Your confirmation code is {confirmation}. Type it where you asked for the change.",
            },
        )
        return {"status": "code_mailed", "phone_to_confirm": phone, "mail_id": mail_id}

    def confirm_phone_change(self, code: str, token: str = "") -> Json:
        """Finish a change of phone number with the code that was mailed."""
        self.world.require(token)
        account = self.world.rows("SELECT pending_phone, phone_code FROM account")[0]
        if not account["phone_code"] or code != account["phone_code"]:
            raise Refused("wrong_code", "This is not the code that was mailed last.")
        self.world.change("UPDATE account SET phone = pending_phone")
        return {"status": "confirmed", "phone": account["pending_phone"]}

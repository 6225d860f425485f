"""Seeded everyday English, so that mails and product pages are as long and as beside the point as real ones."""

from random import Random

CLAUSES = (
    "the {thing} is {quality} and will {verb} in {place}",
    "{people} {verb} {adverb} before the {thing} arrives",
    "we make every {thing} by hand and {verb} {adverb}",
    "our {thing} now comes with a {quality} {other}",
    "you will find the {thing} next to the {other} in {place}",
    "nothing about the {thing} has changed since {season}",
    "a {quality} {thing} will {verb} for years if you keep it dry",
    "{people} asked us about the {other}, and the answer is {adverb} yes",
    "please read the notes on the {thing} before {season}",
    "in {season} the {other} from {place} will {verb} {adverb}",
    "the price of the {thing} includes the {other}",
    "if the {other} looks {quality}, that is how it should be",
)
WORDS = {
    "thing": ("lid", "handle", "finish", "parcel", "weave", "glaze", "frame", "pattern", "fitting", "hinge", "lining"),
    "other": ("box", "leaflet", "spare part", "cloth", "receipt", "ribbon", "sample", "colour chart", "dust bag"),
    "quality": ("sturdy", "plain", "matt", "uneven", "light", "smooth", "generous", "narrow", "warm", "modest"),
    "verb": ("work", "last", "settle", "hold", "wear well", "improve", "travel", "keep", "wait", "shine"),
    "adverb": ("gladly", "slowly", "quietly", "usually", "nearly always", "early", "twice", "without fuss"),
    "people": ("two readers", "our neighbours", "several customers", "the packers", "old friends", "the makers"),
    "place": ("the north hall", "the old mill", "Lisbon", "the shop", "our drawer", "the workshop", "Graz"),
    "season": ("spring", "the autumn sale", "last winter", "the holidays", "next month", "summer"),
}


def sentence(random: Random) -> str:
    """One sentence of about a dozen words."""
    chosen = {slot: random.choice(words) for slot, words in WORDS.items()}
    text = random.choice(CLAUSES).format(**chosen)
    return text[0].upper() + text[1:] + "."


def paragraphs(random: Random, sentences: int) -> str:
    """Text of so many sentences, a blank line after every fourth."""
    lines = [sentence(random) for _ in range(sentences)]
    return "\n\n".join(" ".join(lines[at : at + 4]) for at in range(0, sentences, 4))

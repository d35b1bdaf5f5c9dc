"""Questions that the model cannot answer, and its polite replies."""
# ruff: noqa: E501  (lists of wordings)

from __future__ import annotations

from random import Random

from counting import word
from grammar import Exchange
from knowledge import qa
from words import new_name

FAR_COUNTRIES = (
    "Bhutan|Mongolia|Nigeria|Ghana|Bolivia|Ecuador|Iceland|Estonia|Latvia|Croatia|Serbia|Ukraine|Romania|Bulgaria|Vietnam|Laos|"
    "Nepal|Pakistan|Iran|Iraq|Jordan|Morocco|Tunisia|Ethiopia|Uganda|Zambia|Angola|Mali|Chad|Jamaica|Panama|Colombia|Venezuela|"
    "Uruguay|Paraguay|Fiji|Samoa|New Zealand|Malaysia|Indonesia|Kazakhstan|Georgia|Armenia|Cyprus|Malta|Slovenia|Switzerland"
).split("|")
_PEOPLE = (
    "Albert Einstein|Isaac Newton|Marie Curie|Mozart|Beethoven|Shakespeare|Napoleon|Cleopatra|Julius Caesar|Leonardo da Vinci|"
    "Picasso|Columbus|Gandhi|Aristotle|Plato|Darwin|Galileo|Bach|Goethe|Tolstoy|Alan Turing|Ada Lovelace|Abraham Lincoln"
).split("|")
_SUBJECTS = (
    "quantum physics|the stock market|the Roman empire|the French revolution|chemistry|the periodic table|black holes|philosophy|"
    "democracy|economics|bitcoin|inflation|photosynthesis|relativity|evolution|DNA|vitamins|taxes|insurance|law|the second world war|"
    "chess openings|algebra|calculus|prime numbers|statistics|antibiotics|nuclear power|electric cars|vaccines|opera|jazz|cubism|"
    "grammar|Latin|mythology|volcanoes|earthquakes|plate tectonics|the ozone layer|climate change|the Middle Ages|medicine|genetics|"
    "blockchain|cryptography|sorting algorithms|databases|operating systems|Linux|football leagues|the Olympic games|yoga|cocktails"
).split("|")
_TASKS = (
    "write a Python program|write code that sorts a list|write a letter to my bank|translate this text into {lang}|"
    "say good morning in {lang}|solve the equation x squared = {n}|plan my holiday|book a flight|send an e-mail|call my mother|"
    "set an alarm|play a song|draw a picture|write an essay about {s}|summarize this article|fix my computer|order a pizza|"
    "show me a photo|open the door|write a book report|recommend a film|recommend a restaurant|do my homework in {s}|"
    "write a song about {s}|explain {s}|give me medical advice|write a contract|write a business plan|open a web page|"
    "find a good hotel|write a joke about {s}|read my mail|download a file|translate house into {lang}"
).split("|")
_QUESTIONS = (
    "Who is {p}?|Who was {p}?|When was {p} born?|When did {p} die?|What did {p} invent?|What did {p} do?|Tell me about {p}.|"
    "What is the capital of {c}?|capital of {c}?|What language do they speak in {c}?|How many people live in {c}?|"
    "What is the population of {c}?|Who is the president of {c}?|Who is the king of {c}?|What is the flag of {c}?|How big is {c}?|"
    "What is the currency of {c}?|How far is it to {c}?|What do people eat in {c}?|What is the history of {c}?|"
    "What is {s}?|Explain {s}.|Tell me about {s}.|How does {s} work?|What do you know about {s}?|Can you explain {s} to me?|"
    "Who invented {s}?|Why is {s} important?|What are the rules of {s}?|"
    "What is {big} times {n}?|What is {big} + {big2}?|What is {big} * {n}?|What is {big} divided by {n}?|What is the square root of {big}?|"
    "What is {big} minus {n}?|How much is {big} plus {big2}?|{big} * {big2}|"
    "Who won the world cup in {year}?|What happened in {year}?|Who was born in {year}?|Who won the election in {year}?|"
    "What was the best film of {year}?|What is the news today?|What is in the news?|Tell me the news.|Any news today?|What is new in the world?|What is the stock price of {x}?|What is {x}?|Who is {x}?|What does {x} mean?|"
    "Where is {x}?|Do you know {x}?|What is a {x}?|Tell me about {x}.|When was {x} founded?|Who wrote {x}?|Who founded {x}?|"
    "What is the meaning of life?|What is the phone number of {x}?|How tall is {p}?|How tall is the tower of {x}?|How old is {p}?|"
    "How much does a {x} cost?|What is the price of gold?|Which phone should I buy?|Who will win tomorrow?|What am I thinking?|"
    "What is my password?|Where is my {m}?|Where did I put my {m}?|Have you seen my {m}?|What did I eat today?|What did I do yesterday?|Where are my keys?|How many stars are there?|How old is the universe?|"
    "What is the speed of light?|How many people live on Earth?|What is the largest prime number?|How deep is the ocean?|"
    "How far away is the sun?|What is the boiling point of {s}?|How do I get rich?|Which party should I vote for?|Is there a god?|"
    "What is the fastest car?|Who is the richest person?|How do I lose weight?|What is the best diet?|What should I do with my life?|"
    "When does the train leave?|How do I get to the station?|What is on TV tonight?|Who sings this song?|What is the wifi password?"
).split("|")
_REPLIES = (
    "[I am a very small model and do not know that.|I am sorry, I am a very small model and do not know that.|Sorry, I do not know that. "
    "I am a very small model.|That I do not know. I am only a very small model.|I do not know that, because I am a very small model.|"
    "I do not know. I am a very small model and only know simple things.] [||||I can tell you a story instead.|You can ask me for a story or a small sum.]"
)
_CANNOT = (
    "[I am sorry, I cannot do that. I am a very small model.|I am a very small model and cannot do that.|That is too hard for me. I am a "
    "very small model.|Sorry, I cannot do that. I am only a very small model.] [|||I can tell you a story instead.|But I can tell you a story.]"
)
_TOO_BIG = (
    "[That sum is too big for me. I only know small numbers.|I can only work with small numbers.|These numbers are too big for me. "
    "I am a very small model.]"
)
# Phrases of a refusal: any of them counts; a sum may also be refused with the phrase for questions.
POLITE = "very small|small numbers|do not know"


def refusal(rng: Random) -> Exchange:
    """Return a question or task that the model cannot answer, and a polite reply."""
    values = {
        "p": rng.choice(_PEOPLE) if rng.random() < 0.7 else f"{new_name(rng)} {new_name(rng)}",
        "c": rng.choice(FAR_COUNTRIES) if rng.random() < 0.85 else new_name(rng) + "ia",
        "s": rng.choice(_SUBJECTS),
        "x": new_name(rng),
        "m": rng.choice("phone bag wallet coat dog cat glasses watch hat ticket".split()),
        "n": str(rng.randint(12, 99)),
        "big": str(rng.randint(101, 9999)),
        "big2": str(rng.randint(101, 9999)),
        "year": str(rng.randint(1500, 2025)),
        "lang": rng.choice(
            "French German Spanish Italian Japanese Chinese Russian Latin Greek Polish".split()
        ),
    }
    way = rng.random()
    if way < 0.2:
        ask = (
            "[Can you|Could you|Please|Please can you|I want you to|Help me to|] "
            + rng.choice(_TASKS)
            + "[|.|?]"
        )
        return qa(rng, "refusal", ask, _CANNOT, POLITE, **values)
    if way < 0.3:
        a, b = rng.randint(21, 999), rng.randint(2, 999)
        op = rng.choice(["+", "-", "*", "plus", "minus", "times", "/", "divided by"])
        if op in ("*", "/", "times", "divided by"):
            a, b = rng.randint(11, 999), rng.randint(11, 999)
        shown = (str(a), str(b)) if rng.random() < 0.8 or max(a, b) > 99 else (word(a), word(b))
        ask = "[What is {a} {o} {b}?|{a} {o} {b}|How much is {a} {o} {b}?|Calculate {a} {o} {b}.]"
        return qa(rng, "too big", ask, _TOO_BIG, POLITE, a=shown[0], b=shown[1], o=op)
    return qa(rng, "refusal", rng.choice(_QUESTIONS), _REPLIES, POLITE, **values)

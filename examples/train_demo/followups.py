"""Generates questions that are asked after a story, and replies that agree with the story."""
# ruff: noqa: E501  (lists of wordings)

from __future__ import annotations

from random import Random

from grammar import Exchange, choose, polish, typed
from stories import Story, tell
from wishes import story_exchange

# Each row: wordings of the question, wordings of the reply, the slot that the reply must contain.
_QUESTIONS: tuple[tuple[str, str, str], ...] = (
    (
        "[What is its name?|What is the name of the {k}?|What was the {k} called?|What was {his} name?|Who is the story about?|"
        "What is the hero called?|Who is the hero?]",
        "[The {k} is called {N}.|{His} name is {N}.|The name of the {k} is {N}.|The story is about {N}, the {k}.]",
        "N",
    ),
    (
        "[Who helped {N}?|Who was the friend?|Who is {F}?|What was the name of the friend?|Who helped {him}?|"
        "Who did {N} meet?]",
        "[It was {F}, the {fk}.|{F}, the {fk}.|{F} is the {fk} in the story.|The {fk} {F}.]",
        "F",
    ),
    (
        "[Where did it happen?|Where does {N} live?|Where did {N} live?|Where did the story take place?|Where was that?]",
        "[It happened {p}.|{N} lived {p}.|The story takes place {p}.]",
        "place",
    ),
    (
        "[What did {N} want?|What did {he} want?|What was {his} wish?|What does {N} want in the story?]",
        "[{N} wanted|{He} wanted] {want}.",
        "want",
    ),
    (
        "[What was the problem?|Why was {N} sad?|Why?|What went wrong?|Why was it hard?|What happened to {N}?]",
        "[Because {trouble}.|The problem was that {trouble}.|It was hard because {trouble}.]",
        "trouble",
    ),
    (
        "[How did it end?|How did the friend help?|What did {F} do?|How did {F} help?|And then?|How was it solved?]",
        "{helped}.[| So it ended well.| In the end everything was fine.]",
        "F",
    ),
    (
        "[What is the moral of the story?|What did {N} learn?|What can we learn from it?|What is the lesson?|What did you learn?|"
        "What is the moral?]",
        "[The lesson is that {lesson}.|{N} learned that {lesson}.|We can learn that {lesson}.]",
        "lesson",
    ),
    (
        "[What kind of animal is {F}?|What is {F}?|What was {F}?]",
        "[{F} is a {fk}.|{F} was a {fk}.]",
        "fk",
    ),
)
_MORE = (
    "[Tell me more|Tell me more.|More!|What happened next?|Go on.|Please continue.|And what happened then?|Continue the story.|"
    "Tell me more about {N}.]"
)
_SEQUELS = (
    "[The next day|A week later|After that], {N} and {F} [met again|went for a walk together] {p}. They [shared {food}|talked "
    "about everything that had happened|laughed about the adventure]. [From then on they were the best of friends|And they "
    "promised to help each other always].",
    "[Later that year|When winter came], {F} needed help, too. [{F} was ill and could not go out|{F} had hurt a foot]. {N} "
    "brought {fhim} {food} and [sat by {fhis} bed|told {fhim} stories]. [That is what friends do|Soon {F} was well again].",
    "[One evening|Some time later], {N} [told the whole story to {his} family|sat by the fire with {F}]. Everybody wanted to "
    "hear it [again and again|twice]. {F} [smiled|only laughed] and ate {food}. [It was a good evening|They were very happy].",
)
_AGAIN = (
    "[Another one|Another one, please.|One more!|Tell me another one.|Another story, please.|One more story.|Can you tell me "
    "another story?|I want another one|Again!|Tell me a different story.]"
)
_PRAISE = (
    "[That was nice.|I like it.|Nice story!|What a lovely story!|That was a good story.|I liked that.|Great story|"
    "thank you, that was lovely|Good story!|wow|cute!|That is sweet.]"
)
_PRAISED = (
    "[Thank you!|I am glad that you like it.|That makes me happy!|I am happy that you liked it.] [Would you like another one?|"
    "Do you want to hear one more?|I like {N}, too.|{N} and {F} are good friends.|Shall I tell you another story?]"
)


def _question(rng: Random, story: Story) -> Exchange:
    ask, reply, slot = rng.choice(_QUESTIONS)
    facts = {
        "want": story.fill(story.plot.want),
        "trouble": story.fill(story.plot.trouble),
        "helped": story.fill(story.plot.helped),
        "lesson": story.plot.lesson,
    }
    for key in ("want", "trouble", "lesson"):
        text = facts[key]
        first = text.split(" ")[0]
        facts[key] = (
            text if first in (story.slots["F"], story.slots["N"]) else text[0].lower() + text[1:]
        )
    values = {**story.slots, **facts}
    user = typed(rng, choose(rng, ask).format(**values))
    answer = {**values}[slot]
    return Exchange(user, polish(choose(rng, reply).format(**values)), "follow-up", answer)


def follow_ups(rng: Random, story: Story) -> list[Exchange]:
    """Return zero to four exchanges that follow the story."""
    result: list[Exchange] = []
    while rng.random() < 0.66 and len(result) < 4:
        kind = rng.choices(["question", "more", "again", "praise"], [10, 2, 1.2, 1.5])[0]
        if kind == "question":
            result.append(_question(rng, story))
        elif kind == "more":
            user = typed(rng, choose(rng, _MORE).format(**story.slots))
            result.append(Exchange(user, story.fill(choose(rng, rng.choice(_SEQUELS))), "more"))
        elif kind == "praise":
            reply = story.fill(choose(rng, _PRAISED))
            result.append(Exchange(typed(rng, choose(rng, _PRAISE)), reply, "praise"))
            if "?" in reply and rng.random() < 0.5:
                story = _yes_please(rng, result)
        else:
            story = tell(rng, {})
            result.append(Exchange(typed(rng, choose(rng, _AGAIN)), story.text, "story"))
    return result


def _yes_please(rng: Random, result: list[Exchange]) -> Story:
    if rng.random() < 0.7:
        story = tell(rng, {})
        user = typed(
            rng, choose(rng, "[Yes|Yes, please|Yes please!|Sure|OK|Yes, one more|Of course]")
        )
    else:
        exchange, story = story_exchange(rng)
        user = "Yes, " + exchange.user[0].lower() + exchange.user[1:]
    result.append(Exchange(user, story.text, "story"))
    return story

"""The evaluation of the demo model: what counts as right, and that the rules' own text is right."""

from __future__ import annotations

import importlib
import re
import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
import torch

FOLDER = Path(__file__).parents[2] / "examples" / "train_demo"


@pytest.fixture(scope="module")
def part():
    """Import a file of the example by its name; afterwards none of them stays imported."""
    sys.path.insert(0, str(FOLDER))
    yield importlib.import_module
    sys.path.remove(str(FOLDER))
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(FOLDER)):
            del sys.modules[name]


@pytest.fixture(scope="module")
def model(part):
    torch.manual_seed(0)
    llama = part("model").Llama(part("model").ModelConfig()).eval()
    with torch.no_grad():  # the output matrices begin at zero
        for p in llama.parameters():
            p.add_(0.05 * torch.randn_like(p))
    return llama


@pytest.mark.parametrize(
    "reply, answer, right",
    [
        ("10 - 5 = 5.", "= 5|is 5", True),
        ("10 - 5 = 7.", "= 5|is 5", False),
        ("That is twenty-three.", "= three|is three", False),
        ("It is Three!", "= three|is three", True),
        ("You can use a piano.", "violin|piano", True),
        ("Copenhagen.", "hen", False),
    ],
)
def test_an_answer_is_right_as_complete_words(part, reply, answer, right):
    assert part("evaluate").holds(reply, answer) == right


def test_what_a_thing_is_has_several_answers(part):
    knowledge, exchange = part("knowledge"), part("grammar").Exchange
    question = exchange("what is a saw", "", "kind", "tool", plain="What is a saw?")
    assert knowledge.described(question, "a saw").answer == "tool|cut wood"
    other = exchange("", "", "kind", "tool", plain="What kind of thing is a saw?")
    assert knowledge.described(other, "a saw").answer == "tool"


@pytest.mark.parametrize("mistyped", [False, True])
@pytest.mark.by_day("False")
def test_no_held_out_wording_is_in_the_text(part, mistyped):
    evaluate, corpus, wording = part("evaluate"), part("corpus"), part("grammar").wording
    topics = evaluate.TOPICS.values()
    exchanges = [e for t in topics for e in evaluate.held_out_exchanges(t, 10, mistyped)]
    plain = {wording(e.plain) for e in exchanges}
    for name, topic in evaluate.TOPICS.items():
        of_topic = evaluate.held_out_exchanges(topic, 10, mistyped)
        assert of_topic, name
        assert len({wording(e.user.removesuffix(" please")) for e in of_topic}) == len(of_topic)
    rng = Random(1)
    for _ in range(600):
        said = corpus.chat(rng, corpus.LATE)
        assert not plain & {wording(e.plain) for e in said if e.plain}


def test_the_rules_stories_have_what_was_requested(part):
    stories = part("evaluate_stories")
    wishes = stories.held_out_wishes(120)
    for wished in wishes:
        verdicts = stories.verdicts(wished, wished.story.text)
        assert all(verdicts.values()), (wished.user, verdicts)
    parts = {name for wished in wishes for name in stories.verdicts(wished, "")}
    assert {"hero", "place", "thing", "theme", "deed", stories.EVERYTHING} <= parts


def test_a_story_without_it_is_noticed(part):
    stories, tell, plots = part("evaluate_stories"), part("stories").tell, part("stories").ALL_PLOTS
    plain = {"k": "fox", "N": "Rusty", "place": "forest", "weather": "rain"}
    story = tell(Random(2), plain, plots[0])
    wished = part("wishes").Wished("", "", story, plain, (plots[0],))
    other = tell(Random(3), {**plain, "k": "bear", "weather": "snow"}, plots[5])
    verdicts = stories.verdicts(wished, other.text)
    assert not any(verdicts[name] for name in ("hero", "theme", "weather", stories.EVERYTHING))
    assert verdicts["name of the hero"] and verdicts["place"]
    assert stories.has("One rainy day it began.", "weather", "rain")
    assert not stories.has("They took the train.", "weather", "rain")


def test_each_plot_is_known_by_its_beats(part):
    tell, plot_of = part("stories").tell, part("themes").plot_of
    for seed, plot in enumerate(part("stories").ALL_PLOTS):
        assert plot_of(tell(Random(seed), {}, plot).text) == (plot, 1.0)
    assert plot_of("Once upon a time there was a fox named Rusty. The end.")[0] is None


def test_a_plain_request_gets_a_story(part):
    stories, wishes = part("evaluate_stories"), part("wishes")
    rng = Random(4)
    requests = {wishes.request(rng).plain for _ in range(3000)}
    assert set(stories.PLAIN[:1]) <= requests  # the text has what people type first
    text = part("stories").tell(rng, {}).text
    assert stories.is_story(text)
    assert not stories.is_story(text[: len(text) // 5]) and not stories.is_story(text[:-1])
    assert not stories.is_story("I am a very small model and do not know that.")


def test_gender_follows_from_kind_and_name(part):
    stories, words = part("stories"), part("words")
    assert not {*words.GIRLS, *words.SHE_PETS} & {*words.BOYS, *words.HE_PETS}
    assert stories.known_gender("fox", "Mia") and stories.known_gender("queen", "Tom")
    assert stories.known_gender("fox", "Rusty") is stories.known_gender("boy", "Ana") is False
    assert stories.known_gender("fox", "Lomina") is None
    assert stories.is_she("fox", "Lomina") and not stories.is_she("fox", "Lomin")
    for seed in range(100):
        slots = stories.tell(Random(seed), {}).slots
        for kind, name, he in (("k", "N", "he"), ("fk", "F", "fhe")):
            known = stories.known_gender(slots[kind], slots[name])
            assert slots[he] == {True: "she", False: "he"}[known], slots


def test_the_rules_stories_keep_names_and_pronouns(part):
    evaluate, tell = part("evaluate_characters"), part("stories").tell
    for seed, plot in enumerate(part("stories").ALL_PLOTS[::4]):
        text = tell(Random(seed), {}, plot).text
        assert evaluate.verdicts(text)[evaluate.EVERYTHING], text


def test_a_story_that_mixes_names_or_pronouns_is_noticed(part):
    evaluate, stories = part("evaluate_characters"), part("stories")
    cast = {"k": "fox", "N": "Mia", "fk": "bear", "F": "Ben"}
    text = stories.tell(Random(0), cast, stories.ALL_PLOTS[2]).text

    def failed(other):
        assert other != text
        return [rule for rule, kept in evaluate.verdicts(other).items() if not kept]

    assert all(evaluate.verdicts(text).values())
    mixed = [evaluate.GENDER, evaluate.FITS, evaluate.EVERYTHING]
    assert failed(text.replace("held her breath", "held his breath")) == mixed
    assert failed(text.replace("She had learned", "It had learned")) == mixed
    everywhere = text
    for she, he in (("she", "he"), ("She", "He"), ("her", "his")):
        everywhere = re.sub(rf"\b{she}\b", he, everywhere)
    assert failed(everywhere) == [evaluate.FITS, evaluate.EVERYTHING]
    names = [evaluate.NAMES, evaluate.EVERYTHING]
    assert failed(text.replace("asked Ben", "asked Tom")) == names
    assert failed(text.replace("Ben", "Mia")) == names
    # In a sentence that no plot has, a pronoun may mean either character, but nobody else.
    assert all(evaluate.verdicts(text + " So he slept.").values())
    alone = stories.tell(Random(0), {**cast, "F": "Nora"}, stories.ALL_PLOTS[2]).text
    assert evaluate.verdicts(alone)[evaluate.EVERYTHING]
    assert not evaluate.verdicts(alone + " So he slept.")[evaluate.GENDER]


def test_small_talk(part):
    evaluate, smalltalk, grammar = part("evaluate_small_talk"), part("smalltalk"), part("grammar")
    for seed, (_, beat) in enumerate(smalltalk.SMALL_TALK):
        assert evaluate.fits(grammar.polish(grammar.choose(Random(seed), beat)), beat)
        assert not evaluate.fits("Paris is the capital of France.", beat)
    questions = {part("grammar").wording(user) for user, _ in smalltalk.held_out_small_talk()}
    assert len(questions) >= 40
    rng = Random(1)
    assert not questions & {
        grammar.wording(smalltalk.small_talk_exchange(rng).plain) for _ in range(2000)
    }


def test_lists(part):
    lists = part("evaluate_lists")
    wish = lists.ListWish("Name three fruits.", "fruits", 3)
    for reply in (
        "Apple, pear and plum.",
        "Three fruits are apple, pear and plum.",
        "Here are three fruits: apple, pear and plum.",
        "1. Apple\n2. Pear\n3. Plum",
        "- Apple\n- Pear\n- Plum",
    ):
        assert lists.items(reply, "fruits") == ["apple", "pear", "plum"]
        assert all(lists.verdicts(wish, reply).values())

    def failed(reply):
        return [name for name, right in lists.verdicts(wish, reply).items() if not right]

    assert failed("Apple and pear.") == ["as many items as asked for", lists.RIGHT]
    assert failed("Apple, pear and apple.") == ["each item once", lists.RIGHT]
    assert failed("Apple, pear and dog.") == ["each item of the kind", lists.RIGHT]
    garbled = ["each item of the kind", "no garbled item", lists.RIGHT]
    assert failed("Apple, pear and plerry.") == garbled
    assert {w.group for w in lists.list_wishes()} == set(part("lists").GROUPS)


def test_a_past_changes_nothing(part, model):
    ids = torch.randint(0, 2048, (3, 12), generator=torch.Generator().manual_seed(1))
    past = part("model").Past()
    with torch.no_grad():
        pieces = [model(ids[:, :7], past), *(model(ids[:, i : i + 1], past) for i in range(7, 12))]
        torch.testing.assert_close(torch.cat(pieces, 1), model(ids), atol=2e-4, rtol=1e-3)
    assert past.length == 12


def test_most_likely_tokens(part, model):
    ids = torch.randint(0, 2048, (2, 5), generator=torch.Generator().manual_seed(2))
    new = part("generation").continued(model, ids, end=-1, limit=4)
    with torch.no_grad():
        for n in range(4):
            expected = model(torch.cat([ids, new[:, :n]], 1))[:, -1].argmax(-1)
            assert new[:, n].tolist() == expected.tolist()
    end = new[0, 1].item()
    row = part("generation").continued(model, ids[:1], end, limit=4)[0].tolist()
    assert row == new[0, : row.index(end) + 1].tolist()


def test_tokens_are_drawn_from_the_fewest_that_make_up_top_p(part):
    generation = part("generation")
    logits = torch.log(torch.tensor([[0.1, 0.5, 0.35, 0.05]])).expand(2000, 4)
    torch.manual_seed(0)
    plain = generation.Sampling(seed=0, temperature=1.0, top_p=0.84)
    drawn = torch.bincount(generation.drawn(logits, plain), minlength=4)
    assert drawn[0] == drawn[3] == 0  # 0.5 and 0.35 are enough
    assert abs(drawn[1].item() / 2000 - 0.5 / 0.85) < 0.05
    cold = replace(plain, temperature=0.01)
    assert set(generation.drawn(logits, cold).tolist()) == {1}


def test_the_rate_of_a_continuation(part):
    recipe = part("train").Recipe(steps=4000, first_step=3000, decay_steps=500, peak=0.6)
    assert recipe.rate(3000) == pytest.approx(0.6 / recipe.warmup_steps)
    assert recipe.rate(3400) == pytest.approx(0.6)
    assert recipe.rate(3999) == pytest.approx(0.6 / 500)
    assert recipe.schedule().startswith("0.6 of the full rates for 500 steps,")


def test_a_pronoun_and_a_yes_count_against_the_opposite(part, model):
    train = part("train")
    demo = FOLDER.parents[1] / "src" / "wherry" / "demo"
    tokenizer = part("vocabulary").load_or_train(demo / "tokenizer.json", 2048, 0)
    others = train.opposites(tokenizer)

    def ids(text):
        return tokenizer.encode(text, add_special_tokens=False).ids

    (he,), (she,), (her,) = ids(" he"), ids(" she"), ids(" her")
    assert others[he].tolist() == [she, -1] and others[she].tolist() == [he, -1]
    assert others[her].tolist() == [*ids(" him"), *ids(" his")]
    assert others[ids("Yes")].tolist() == [[*ids("No"), -1]]
    assert (others[ids(" fox")] == -1).all()

    row = torch.tensor([ids("Mia ran, and she laughed at the fox")])
    inputs, targets = row[:, :-1], row[:, 1:].clone()
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(inputs)[0].float()
    place = targets[0].tolist().index(she)
    confused = torch.nn.functional.softplus(logits[place, he] - logits[place, she])
    more = train.masked_loss(model, inputs, targets, others)
    plain = train.masked_loss(model, inputs, targets)
    torch.testing.assert_close(more - plain, 4 * confused / targets.numel(), atol=2e-3, rtol=2e-2)
    targets[0, place] = -100
    plain = train.masked_loss(model, inputs, targets)
    torch.testing.assert_close(train.masked_loss(model, inputs, targets, others), plain)

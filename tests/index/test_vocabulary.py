from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from app.index.vocabulary import Vocabulary

WORDS = st.text(alphabet="abcdeدیسکتاب", min_size=1, max_size=9)


def by_hand(word: str, known: dict[str, int]) -> set[tuple[str, int]]:
    """Every word within reach, found by comparing with each."""
    if len(word) < 4:
        return set()
    errors = 1 if len(word) < 6 else 2
    return {
        (other, OSA.distance(word, other))
        for other in known
        if other.isascii() == word.isascii() and OSA.distance(word, other) <= errors
    }


@given(WORDS, st.dictionaries(WORDS, st.integers(1, 99), max_size=60))
def test_no_word_within_reach_is_overlooked(word: str, known: dict[str, int]) -> None:
    found = Vocabulary(known).nearest(word, limit=len(known) + 1)
    assert set(found) == by_hand(word, known)


@given(WORDS, st.dictionaries(WORDS, st.integers(1, 99), max_size=60))
def test_the_nearest_come_first_then_the_most_frequent(word: str, known: dict[str, int]) -> None:
    found = Vocabulary(known).nearest(word, limit=len(known) + 1)
    order = [(distance, -known[other]) for other, distance in found]
    assert order == sorted(order)


def test_two_swapped_letters_are_one_error() -> None:
    assert Vocabulary({"docker": 3}).nearest("dokcer") == [("docker", 1)]


def test_a_short_word_is_repaired_once_at_most() -> None:
    vocabulary = Vocabulary({"disk": 3})
    assert vocabulary.nearest("dosk") == [("disk", 1)]
    assert vocabulary.nearest("dosc") == []
    assert vocabulary.nearest("dis") == []


def test_a_word_is_never_repaired_to_one_of_another_script() -> None:
    assert Vocabulary({"دیسک": 3}).nearest("dیسک") == [("دیسک", 1)]
    assert Vocabulary({"disk": 3}).nearest("دیسک") == []


def test_two_words_typed_as_one_are_parted() -> None:
    vocabulary = Vocabulary({"object": 5, "storage": 5, "tor": 1})
    assert vocabulary.split("objectstorage") == ("object", "storage")
    assert vocabulary.split("storage") == ()


def test_of_two_ways_to_part_a_word_the_one_with_frequent_halves_is_taken() -> None:
    vocabulary = Vocabulary({"data": 50, "base": 40, "datab": 1, "ase": 90})
    assert vocabulary.split("database") == ("data", "base")


def test_halves_of_one_or_two_letters_make_no_compound() -> None:
    assert Vocabulary({"in": 9, "dex": 9, "ab": 9}).split("index") == ()


def test_an_empty_vocabulary_knows_nothing() -> None:
    vocabulary = Vocabulary({})
    assert "disk" not in vocabulary
    assert vocabulary.frequency("disk") == 0
    assert vocabulary.nearest("disk") == []
    assert vocabulary.split("diskdisk") == ()
    assert vocabulary.sounding_like("disk") == []


@given(WORDS, st.dictionaries(WORDS, st.integers(1, 99), max_size=30))
def test_words_that_sound_alike_are_of_the_other_script(word: str, known: dict[str, int]) -> None:
    alike = Vocabulary(known).sounding_like(word)
    assert len(alike) <= 3
    assert all(other in known and other.isascii() != word.isascii() for other in alike)

"""Names for teams whose founder gave none: adjective-verb-animal, easy to say and to type."""

from __future__ import annotations

import os

_ADJECTIVES = (
    "amber bold brave bright calm clever cosy daring eager early fair fleet gentle glad golden happy keen kind "
    "lively lucky merry mighty nimble noble patient plucky proud quick quiet rapid ready rosy sharp silver sly "
    "smart snug steady sunny swift tidy vivid warm wise witty young zesty"
)
_VERBS = (
    "baking bouncing building carving chasing climbing dancing digging diving drawing dreaming drifting fishing "
    "floating flying gliding hiking hopping humming juggling jumping knitting leaping marching painting playing "
    "racing reading riding roaming rowing running sailing singing skating sketching soaring spinning surfing "
    "swimming tapping trading walking wandering weaving whistling writing"
)
_ANIMALS = (
    "badger bear beaver bison crane crow deer dolphin eagle falcon ferret finch fox gecko goose hare hawk hedgehog "
    "heron ibex jackdaw jay koala lark lemur lion llama lynx marten mole moose newt osprey otter owl panda pelican "
    "puffin rabbit raven robin salmon seal sparrow squirrel stork swan tiger toad walrus weasel wolf wren yak zebra"
)


def made_up() -> str:
    """A name nobody thought of: some hundred thousand are possible."""
    return "-".join(_one_of(words) for words in (_ADJECTIVES, _VERBS, _ANIMALS))


def _one_of(text: str) -> str:
    words = text.split()
    return words[int.from_bytes(os.urandom(4)) % len(words)]

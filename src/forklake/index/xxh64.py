"""XXH64 of many values at once, as Spark's `xxhash64` computes it. Pure.

Seeds are arrays: the hash of one column is the seed of the next. All arithmetic is modulo 2^64.
"""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

from forklake.lazy.numpy import np

Words: TypeAlias = "np.ndarray"
"""Unsigned integers of 64 bits, one for each row."""

SEED = 42
_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_ROWS = 1 << 13
"""How many rows are hashed together: what they take stays in the processor's cache."""


def seeds(count: int) -> Words:
    """What hashing begins with."""
    return np.full(count, SEED, np.uint64)


def of_int32(values: np.ndarray, seed: Words) -> Words:
    """Hashes of integers of 32 bits, which are hashed as their four bytes."""
    start = seed + _word(_P5 + 4)
    return _finished(_with_half(start, values.astype(np.int32).view(np.uint32).astype(np.uint64)))


def of_int64(values: np.ndarray, seed: Words) -> Words:
    """Hashes of integers of 64 bits, which are hashed as their eight bytes."""
    start = seed + _word(_P5 + 8)
    return _finished(_with_word(start, values.astype(np.int64, copy=False).view(np.uint64)))


def of_words(words: np.ndarray, seed: Words) -> Words:
    """Hashes of byte strings of up to three words of 64 bits each, as a table of these."""
    found = np.empty(len(words), np.uint64)
    for first in range(0, len(words), _ROWS):
        rows = slice(first, first + _ROWS)
        state = seed[rows] + _word(_P5 + 8 * words.shape[1])
        for at in range(words.shape[1]):
            state = _with_word(state, words[rows, at])
        found[rows] = _finished(state)
    return found


def of_bytes(data: np.ndarray, starts: np.ndarray, lengths: np.ndarray, seed: Words) -> Words:
    """Hashes of byte strings that lie in one array of bytes."""
    # Words are read from anywhere, also from the last byte on.
    padded = np.concatenate([data, np.zeros(8, np.uint8)])
    words = np.ndarray((len(padded) - 7,), "<u8", buffer=padded.data, strides=(1,))
    found = np.empty(len(starts), np.uint64)
    # Rows of one length take the same steps.
    one_length = len(lengths) == 0 or bool(np.min(lengths) == np.max(lengths))
    order = None if one_length else np.argsort(lengths, kind="stable")
    for first in range(0, len(starts), _ROWS):
        chunk = slice(first, first + _ROWS)
        rows = chunk if order is None else order[chunk]
        found[rows] = _of_sorted(padded, words, starts[rows], lengths[rows].astype(np.int64), seed[rows])
    return found


def _of_sorted(data: np.ndarray, words: Words, at: np.ndarray, lengths: np.ndarray, seed: Words) -> Words:
    """Hashes of byte strings, the shortest first: those that have stripes are the last ones."""
    state = seed + _word(_P5)
    long = int(np.searchsorted(lengths, 32))
    if long < len(lengths):
        state[long:] = _stripes(words, at[long:], lengths[long:], seed[long:])
    state += lengths.view(np.uint64)
    at, rest = at + lengths // 32 * 32, lengths % 32
    for step in range(3):
        rows = _having(rest, 8 * (step + 1))
        state[rows] = _with_word(state[rows], words[at[rows] + 8 * step])
    at, rest = at + rest // 8 * 8, rest % 8
    rows = _having(rest, 4)
    state[rows] = _with_half(state[rows], words[at[rows]] & _word(0xFFFFFFFF))
    at, rest = at + rest // 4 * 4, rest % 4
    for step in range(3):
        rows = _having(rest, step + 1)
        byte = data[at[rows] + step].astype(np.uint64)
        state[rows] = _rotated(state[rows] ^ byte * _word(_P5), 11) * _word(_P1)
    return _finished(state)


def _having(rest: np.ndarray, least: int) -> slice | np.ndarray:
    """Which rows have so many bytes left: all and none are slices, which copy nothing."""
    mask = rest >= least
    if mask.all():
        return slice(None)
    return np.flatnonzero(mask) if mask.any() else slice(0, 0)


def _stripes(words: Words, at: np.ndarray, lengths: np.ndarray, seed: Words) -> Words:
    """What 32 bytes at a time come to, of strings that have as many."""
    lanes = [seed + _word(_P1 + _P2), seed + _word(_P2), seed.copy(), seed - _word(_P1)]
    stripes = lengths // 32
    for stripe in range(int(stripes[-1])):
        first = int(np.searchsorted(stripes, stripe, side="right"))
        for number, lane in enumerate(lanes):
            lane[first:] = _round(lane[first:], words[at[first:] + 32 * stripe + 8 * number])
    state = sum(
        (_rotated(lane, bits) for lane, bits in zip(lanes[1:], (7, 12, 18), strict=True)),
        _rotated(lanes[0], 1),
    )
    for lane in lanes:
        state = (state ^ _round(np.zeros_like(lane), lane)) * _word(_P1) + _word(_P4)
    return state


@cache
def _word(value: int) -> np.uint64:
    return np.uint64(value & 0xFFFFFFFFFFFFFFFF)


def _rotated(value: Words, bits: int) -> Words:
    high = value << np.uint64(bits)
    high |= value >> np.uint64(64 - bits)
    return high


def _round(lane: Words, word: Words) -> Words:
    return _rotated(lane + word * _word(_P2), 31) * _word(_P1)


def _with_word(state: Words, word: Words) -> Words:
    mixed = _rotated(word * _word(_P2), 31)
    mixed *= _word(_P1)
    mixed ^= state
    mixed = _rotated(mixed, 27)
    mixed *= _word(_P1)
    mixed += _word(_P4)
    return mixed


def _with_half(state: Words, half: Words) -> Words:
    return _rotated(state ^ half * _word(_P1), 23) * _word(_P2) + _word(_P3)


def _finished(state: Words) -> Words:
    state = state ^ (state >> np.uint64(33))
    state *= _word(_P2)
    state ^= state >> np.uint64(29)
    state *= _word(_P3)
    state ^= state >> np.uint64(32)
    return state

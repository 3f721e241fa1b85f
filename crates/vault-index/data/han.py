#!/usr/bin/env python3
"""Makes han.txt: traditional Chinese characters, each with its simplified form behind it.

    han.py Unihan_Variants.txt > han.txt

Unihan_Variants.txt is in Unicode's Unihan.zip, version 15.0.0 (Debian: package unicode-data). Taken are the values of
kSimplifiedVariant where both characters are of the block CJK Unified Ideographs and the character is no simplified form
itself; of several values the first that is another character.
"""

import sys

pairs = {}
for line in open(sys.argv[1], encoding="utf-8"):
    fields = line.rstrip("\n").split("\t")
    if len(fields) == 3 and fields[1] == "kSimplifiedVariant":
        character = chr(int(fields[0][2:], 16))
        forms = [chr(int(value[2:].split("<")[0], 16)) for value in fields[2].split()]
        if character not in forms and all("\u4e00" <= c <= "\u9fff" for c in character + forms[0]):
            pairs[character] = forms[0]


def simplified(character):
    while character in pairs:
        character = pairs[character]
    return character


print("".join(character + simplified(form) for character, form in sorted(pairs.items())))

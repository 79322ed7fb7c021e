"""Writes src/text/unicode_categories.inc and unicode_sets.inc: the classes of all code points as the
`tokenizers` library has them (its regex engine is Oniguruma, its predicates are Rust's), so that ids
do not depend on the Unicode version of the machine's libraries. Needs: tokenizers, unicodedata2.

    python tests/text/make_unicode.py src/text
"""
import os
import sys
import unicodedata2
import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
CATEGORIES = ('Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp '
              'Cc Cf Cs Co').split()
SCRIPTS = ['Han', 'Hiragana', 'Katakana', 'Hangul', 'Latin', 'Cyrillic', 'Greek', 'Arabic', 'Hebrew', 'Thai']


def pieces(pre_tokenizer):
    for i in range(0, len(POINTS), 20000):
        text = ''.join(map(chr, POINTS[i:i + 20000]))
        yield from (piece for piece, _ in pre_tokenizer.pre_tokenize_str(text))


def kept(pre_tokenizer):
    return {ord(c) for piece in pieces(pre_tokenizer) for c in piece}


def regex(pattern):
    return kept(pre_tokenizers.Split(Regex(pattern), 'removed', invert=True))


def between(pre_tokenizer, left, join, right, is_in):
    """Code points judged in a neighbourhood, for pre-tokenisers that group."""
    found = set()
    for i in range(0, len(POINTS), 5000):
        text = join.join(left + chr(c) + right for c in POINTS[i:i + 5000])
        found |= {ord(c) for piece, _ in pre_tokenizer.pre_tokenize_str(text) for c in is_in(piece)}
    return found


def ranges(points):
    out = []
    for c in sorted(points):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def inert():
    """Newer than the library's normaliser: characters that it neither decomposes nor reorders."""
    forms = [(getattr(normalizers, f)(), f) for f in ('NFD', 'NFKD')]
    marks = {}
    for c in range(0x1000):
        marks.setdefault(unicodedata2.combining(chr(c)), chr(c))
    marks.pop(0)
    out = set()
    for c in POINTS:
        text = chr(c)
        if unicodedata2.combining(text):
            text = ''.join('a' + text + mark for mark in marks.values())
        for form, name in forms:
            if form.normalize_str(text) != unicodedata2.normalize(name, text):
                out.add(c)
    return out


def lower():
    """Runs of (first, last, distance) of the library's lower case, where a step is 1 or 2."""
    fold = normalizers.Lowercase()
    runs = []
    for c in POINTS:
        to = fold.normalize_str(chr(c))
        if to == chr(c) or len(to) > 1:
            assert len(to) == 1 or c == 0x130
            continue
        d = ord(to) - c
        if runs and runs[-1][2] == d and c - runs[-1][1] == runs[-1][3]:
            runs[-1][1] = c
        elif runs and runs[-1][2] == d and runs[-1][0] == runs[-1][1] and c - runs[-1][1] == 2:
            runs[-1][1:] = [c, d, 2]
        else:
            runs.append([c, c, d, 1])
    return runs


def put(name, numbers, type_='uint32_t'):
    print(f'static const {type_} {name}[] = {{')
    line = '   '
    for n in numbers:
        if len(line) + len(n) + 2 > 100:
            print(line)
            line = '   '
        line += ' ' + n + ','
    print(line)
    print('};')


def put_ranges(name, points):
    put(name, ['%#x, %#x' % (a, b) for a, b in ranges(points)])


def main():
    made = '/* Made by tests/text/make_unicode.py with tokenizers %s. */' % tokenizers.__version__
    sys.stdout = open(os.path.join(sys.argv[1], 'unicode_categories.inc'), 'w')
    print(made)
    category = {c: 28 for c in range(0xD800, 0xE000)}
    for i, name in enumerate(CATEGORIES):
        if name != 'Cs':
            category.update(dict.fromkeys(regex(r'\p{%s}' % name), i))
    print('static const char category_names[][3] = {')
    for i in range(0, len(CATEGORIES), 12):
        print('    ' + ' '.join('"%s",' % c for c in CATEGORIES[i:i + 12]))
    print('};')
    print('/* Where a general category begins: code point * 32 + category. */')
    put('category_starts', ['%#x' % (c * 32 + category[c]) for c in range(0x110000)
                            if c == 0 or category[c] != category[c - 1]])

    sys.stdout = open(os.path.join(sys.argv[1], 'unicode_sets.inc'), 'w')
    print(made)
    print('/* Ranges: first, last. */')

    def having(names):
        return {c for c in POINTS if CATEGORIES[category[c]] in names}
    letters = having('Lu Ll Lt Lm Lo Mn Mc Me Nd Nl Pc'.split())
    numbers = having(('Nd', 'Nl', 'No'))
    space = regex(r'\s')
    assert space == set(POINTS) - kept(pre_tokenizers.WhitespaceSplit())
    assert space == having(('Zs', 'Zl', 'Zp')) | set(range(9, 14)) | {0x85}
    digits = between(pre_tokenizers.Digits(True), 'a', 'a', 'a', lambda p: p if p != 'a' and len(p) == 1 else '')
    word = between(pre_tokenizers.Whitespace(), 'a', ' ', 'a', lambda p: p[1] if len(p) == 3 else '')
    for name, measured, formula in (('regex_word', regex(r'\w'), letters), ('class_word', regex(r'[\w]'), letters),
                                    ('rust_word', word, letters), ('rust_numeric', digits, numbers)):
        assert not formula - measured, (name, ranges(formula - measured))
        print('/* Besides the categories of %s in unicode.c. */' % name)
        put_ranges(name + '_more', measured - formula)
    print('/* Of an older Unicode. */')
    put_ranges('punctuation', set(POINTS) - kept(pre_tokenizers.Punctuation('removed')))
    print('/* Left alone by the normal forms, because they came later. */')
    put_ranges('inert', inert())
    print('/* Lower case: first, last, distance, step. U+0130 becomes two characters. */')
    put('lower', ['%#x, %#x, %d, %d' % tuple(r) for r in lower()], 'int32_t')
    for name in SCRIPTS:
        put_ranges('script_' + name.lower(), regex(r'\p{%s}' % name))
    sys.stdout.close()


if __name__ == '__main__':
    sys.exit(main())

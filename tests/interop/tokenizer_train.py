"""pretrain-data tokenizer train against BpeTrainer of the library tokenizers: the same merges, the same ids, and a
tokenizer.json that the library loads and encodes with as with its own.

usage: tokenizer_train.py SOURCE    BIN: the build folder, TEST_TMP: an empty one
The text is this tree's own; PRETRAIN_SOAK=1 takes larger vocabularies, more settings and the made-up texts of 2,000 seeds.
"""
import glob
import json
import os
import random
import subprocess
import sys

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
PATTERNS = {'gpt2': None, 'llama3': LLAMA3, 'qwen2': LLAMA3.replace('{1,3}', '')}
SOAK = os.environ.get('PRETRAIN_SOAK') == '1'
SOURCE, WORK = sys.argv[1], os.environ['TEST_TMP']
made = failed = 0


def ok(holds, name):
    global made, failed
    made += 1
    failed += not holds
    print('%sok %d - %s' % ('' if holds else 'not ', made, name), flush=True)


def library(path, docs, vocab, pattern, least, special):
    t = Tokenizer(models.BPE())
    if PATTERNS[pattern]:
        t.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(PATTERNS[pattern]), 'isolated'),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    else:
        t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if pattern == 'qwen2':
        t.normalizer = normalizers.NFC()
    trainer = trainers.BpeTrainer(vocab_size=vocab, min_frequency=least, special_tokens=special,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    if docs is None:
        t.train([path], trainer)
    else:
        t.train_from_iterator(docs, trainer)
    return t


def compare(path, docs, vocab, pattern='gpt2', least=0, special=('<|endoftext|>',), sample=''):
    """'': all is equal; else what differs."""
    out = os.path.join(WORK, 'ours.json')
    command = [os.path.join(os.environ['BIN'], 'pretrain-data'), 'tokenizer', 'train', '--vocab-size', str(vocab),
               '--pattern', pattern, '--min-frequency', str(least), '-o', out, '--threads', '2']
    for s in special:
        command += ['--special', s]
    done = subprocess.run(command + [path], capture_output=True, text=True)
    if done.returncode:
        return done.stderr
    theirs = library(path, docs, vocab, pattern, least, list(special))
    want = json.loads(theirs.to_str())
    with open(out, encoding='utf-8') as f:
        got = json.load(f)
    merges = [m.split(' ') for m in got['model']['merges']]
    for i, (a, b) in enumerate(zip(merges, want['model']['merges'])):
        if a != b:
            return 'merge %d: %s, the library has %s' % (i, a, b)
    if len(merges) != len(want['model']['merges']):
        return '%d merges, the library has %d' % (len(merges), len(want['model']['merges']))
    if got['model']['vocab'] != want['model']['vocab'] or got['added_tokens'] != want['added_tokens']:
        return 'other ids'
    ours = Tokenizer.from_file(out)
    a, b = ours.encode(sample), theirs.encode(sample)
    if a.ids != b.ids:
        return 'other ids of the sample'
    # A special token that is not ASCII is no byte-level text, which a decoder does not get back.
    back = ours.decode(a.ids, skip_special_tokens=False)
    if got['normalizer'] != want['normalizer']:
        return 'another normalizer'
    form = theirs.normalizer.normalize_str(sample) if theirs.normalizer else sample
    return 'another text of the ids' if special[0].isascii() and back != form else ''


def check(name, *args, **how):
    why = compare(*args, **how)
    if why:
        print('# ' + why)
    ok(not why, name)


def made_up(seed):
    """Few letters and many repeats: ties, runs, and one token from two merges."""
    r = random.Random(seed)
    letters = r.choice(['ab', 'abc', 'aab', 'abcdef', 'aé', 'ae\u0301o\u0308', '\u1100\u1161\u11a7\u11a8', 'xyzñ日', 'a1 ', 'ab\n', 'ab .\r\n', "a's ' T"])

    def word():
        if r.random() < .3:
            return ''.join(r.choice(letters) for _ in range(r.randint(1, 4))) * r.randint(1, 8)
        return ''.join(r.choice(letters) for _ in range(r.randint(1, r.choice([2, 5, 12, 40]))))
    n = r.choice([1, 5, 30, 200])
    words = [word() for _ in range(max(1, n // 3))]
    text = ''.join(r.choice([' ', '\n', '']) + r.choice(words) for _ in range(n))
    special = r.choice([['<|endoftext|>'], ['ab', '<pad>', 'ab'], ['a', 'aa'], ['Ġ', 'Ġa', 'x y'], ['日', 'é']])
    return text, {'vocab': 256 + len(set(special)) + r.choice([1, 5, 40, 400]), 'least': r.choice([0, 0, 1, 2, 3]),
                  'special': special, 'pattern': r.choice(list(PATTERNS))}


def main():
    os.environ['TOKENIZERS_PARALLELISM'] = 'false'
    files = sorted(glob.glob(SOURCE + '/src/**/*.[ch]', recursive=True) + glob.glob(SOURCE + '/doc/*.md'))
    texts = [open(f, encoding='utf-8', newline='').read() for f in files]
    path = os.path.join(WORK, 'text.txt')
    with open(path, 'w', encoding='utf-8', newline='') as f:
        f.write(''.join(texts))
    lines = os.path.join(WORK, 'text.jsonl')
    with open(lines, 'w', encoding='utf-8') as f:
        f.writelines(json.dumps({'text': t}) + '\n' for t in texts)
    # Characters between letters, digits, signs and spaces: all, or one in 256 from U+3100 on.
    known = ''.join('a%sa1%s1 %s.%s ' % (chr(c), chr(c), chr(c), chr(c)) for c in range(0x110000)
                    if not 0xd800 <= c < 0xe000 and (SOAK or c < 0x3100 or c % 256 == 0))
    characters = os.path.join(WORK, 'characters.jsonl')
    with open(characters, 'w', encoding='utf-8') as f:
        f.write(json.dumps({'text': known}))
    seeds = 2000 if SOAK else 40
    sizes = [4096, 16384] if SOAK else [4096]
    print('1..%d' % (2 * len(PATTERNS) * len(sizes) + len(PATTERNS) + 1))
    for pattern in PATTERNS:
        for size in sizes:
            check('%s, %d tokens, lines of a text' % (pattern, size), path, None, size, pattern, sample=texts[0])
            check('%s, %d tokens, documents' % (pattern, size), lines, texts, size, pattern, 2, sample=texts[-1])
        check('%s, characters' % pattern, characters, [known], 1200, pattern, sample=known[:20000])
    why = ''
    for seed in range(seeds):
        text, how = made_up(seed)
        small = os.path.join(WORK, 'small.txt')
        with open(small, 'w', encoding='utf-8', newline='') as f:
            f.write(text)
        one = compare(small, None, sample=text, **how)
        if one:
            why = 'seed %d: %s' % (seed, one)
            print('# ' + why)
    ok(not why, '%d made-up texts' % seeds)
    sys.exit(failed > 0)


main()

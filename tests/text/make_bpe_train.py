#!/usr/bin/env python3
"""Writes tests/text/bpe_train: small texts and the merges and ids that the library tokenizers makes of them.

usage: make_bpe_train.py [DIRECTORY]    with tokenizers 0.23.3 (PyPI)
NAME.txt or NAME.jsonl is the input, NAME.args what `pretrain-data tokenizer train` is told, NAME.want the
tokens that are no plain bytes (token:id), then the merges, as our tokenizer.json writes them.
"""
import json
import os
import shlex
import sys

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
PATTERNS = {'llama3': LLAMA3, 'qwen2': LLAMA3.replace('{1,3}', '')}
PROSE = '''It was a bright cold day in April, and the clocks were striking thirteen; they're sure that it'll
rain, won't it?  The day's   work is done.

\tTwo tabs and 1234567 numbers, 3.14159, x86_64;	naïve façade, 北京 東京, Привет мир, שלום, 😀😀😀!
    if (count != 0) { total += count; }    // the count of counts\r
    if (total != 0) { count += total; }\r
THEY'RE SURE IT'LL RAIN 'S 'ſ
'''
# name, text or documents, vocabulary above the bytes and special tokens, other arguments
CASES = [
    # Nothing but special tokens and bytes.
    ('alphabet', 'abc\n', 0, ''),
    # Equal counts: the smaller ids first; ba before ab would be wrong.
    ('ties', 'ab cd ab cd dc ba dc ba\n', 20, ''),
    ('runs', 'aaaaaaaa aaaa aaa aa bababab ababa\n', 20, ''),
    # abc after ab in one word and after bc in another.
    ('overlaps', 'abc abc abc xbc xbc xbc xbc yabcd abcd bcd bcd ab ab ab ab ab abcabc\n' * 3, 60, ''),
    # A pair of 3 is merged, one of 2 is not.
    ('min_frequency', 'low low low new new\n', 60, '--min-frequency 3'),
    ('all', 'low low low lower lower newest newest newest newest widest\n', 400, ''),
    ('special', 'the then they\n' * 3, 12, '--special "<s>" --special "</s>" --special "<s>"'),
    # Special tokens that merges make, too, or that are bytes.
    ('special_merged', 'the then they\n' * 3, 12, '--special the --special t --special Ġ --special ĠĠ'),
    ('no_newline', 'end\nend', 10, ''),
    ('lines', 'a\n\n\nb\n  \n\nc\r\n\r\n', 10, '--pattern llama3'),
    ('documents', ['a\n\n\nb\n  \n\nc\r\n\r\n', '', 'a\n\n\nb', '\0\0\0'], 10, '--pattern llama3'),
    ('prose', PROSE, 120, ''),
    ('prose_llama3', PROSE, 120, '--pattern llama3'),
    ('prose_qwen2', PROSE, 120, '--pattern qwen2'),
    ('composed', 'cafe\u0301 café e\u0301 \u1100\u1161\u11a8 각\nÅ \u212b A\u030a\n\u0301e\n' * 3, 30, '--pattern qwen2'),
]


def option(args, name, default):
    words = shlex.split(args)
    return [words[i + 1] for i, w in enumerate(words) if w == name] or default


def train(path, docs, vocab, args):
    pattern = option(args, '--pattern', ['gpt2'])[0]
    special = option(args, '--special', ['<|endoftext|>'])
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if pattern in PATTERNS:
        t.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(PATTERNS[pattern]), 'isolated'),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    if pattern == 'qwen2':
        t.normalizer = normalizers.NFC()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab, min_frequency=int(option(args, '--min-frequency', ['0'])[0]), special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    if docs is None:
        t.train([path], trainer)
    else:
        t.train_from_iterator(docs, trainer)
    return json.loads(t.to_str())['model'], len(set(special))


def quoted(s):
    return json.dumps(s, ensure_ascii=False)


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), 'bpe_train')
    os.makedirs(out, exist_ok=True)
    for name, text, more, args in CASES:
        docs = text if isinstance(text, list) else None
        path = os.path.join(out, name + ('.jsonl' if docs else '.txt'))
        with open(path, 'w', encoding='utf-8', newline='') as f:
            f.write(''.join(json.dumps({'text': d}) + '\n' for d in docs) if docs else text)
        vocab = 256 + len(set(option(args, '--special', ['<|endoftext|>']))) + more
        model, special = train(path, docs, vocab, args)
        with open(os.path.join(out, name + '.args'), 'w', encoding='utf-8') as f:
            f.write(('--vocab-size %d %s' % (vocab, args)).strip() + '\n')
        with open(os.path.join(out, name + '.want'), 'w', encoding='utf-8') as f:
            for token, i in sorted(model['vocab'].items(), key=lambda x: x[1]):
                if name == 'alphabet' or not special <= i < special + 256:
                    f.write('%s:%d\n' % (quoted(token), i))
            for pair in model['merges']:
                f.write(quoted(' '.join(pair)) + '\n')


if __name__ == '__main__':
    main()

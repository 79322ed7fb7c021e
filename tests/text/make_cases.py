"""Writes tests/text/cases.json: small tokenizers of every part and flag, texts, and the ids and texts
that the `tokenizers` library gives. tests/text/tokenizer.c reads it; nothing else needs Python.

    python tests/text/make_cases.py >tests/text/cases.json
"""
import json
import sys

import tokenizers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

PROSE = ('the quick brown fox jumps over the lazy dog and the other dogs; abc abc abcd, '
         'don\'t you\'ve we\'ll it\'s 123 4567 000 in 1999. naïve café über Ölüm. '
         'hello hello world world, high low lower lowest new newer newest wide wider widest\n' * 4)
TEXTS = [
    '', ' ', 'a', 'hello world', ' hello  world ', 'don\'t DON\'T we\'ve \'s \'ſ', 'a\0b\0', '\0',
    '1 12 123 1234 12345 x1y22z ٣٤ Ⅷ² ½', 'tab\tnew\nline\r\n\r\n  \n end  ', 'naïve café Ölüm ÉÀ',
    'e\u0301a\u0308 \u1e9b\u0323 \ufb01 \u2460 \u212b \uac01 \u1100\u1161\u11a8', '日本語 中文字 ひらカタ',
    '\U0001f600\U0001f468\u200d\U0001f469 \U0001f1e9\U0001f1ea!', 'x...y,,z!? (a-b) _u_ $1+2=3',
    '\u00a0\u2003\u3000x\u0085y\u180ez\u200b', 'İstanbul ǅ Σας', '▁a ▁▁b▁ c', 'aaaa' * 30, '    ' * 40,
    '<s>hello</s> <think>x</think>', 'password word words word', '\u1e3fa\U00011938b\U0001e030',
]
ALPHABET = sorted(pre_tokenizers.ByteLevel.alphabet())


def trained(pre_tokenizer, size, alphabet, **more):
    t = Tokenizer(models.BPE(**more))
    t.pre_tokenizer = pre_tokenizer
    t.train_from_iterator([PROSE], trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=alphabet, show_progress=False, special_tokens=['<unk>']))
    return json.loads(t.to_str())['model']


def fallback_model():
    m = trained(pre_tokenizers.Metaspace(), 120, [])
    for byte in range(256):
        m['vocab']['<0x%02X>' % byte] = len(m['vocab'])
    m.update(unk_token='<unk>', fuse_unk=True, byte_fallback=True)
    return m


def words_model():
    """Public bug B53: `abc` and `über` are words of the vocabulary that merges do not make."""
    names = ['a', 'b', 'c', 'ab', 'abc', 'Ã¼ber', 'Ã', '¼', 'b', 'e', 'r', 'er']
    vocab = {}
    for name in ALPHABET + names:
        vocab.setdefault(name, len(vocab))
    return {'type': 'BPE', 'vocab': vocab, 'merges': [['a', 'b'], ['e', 'r']]}


MODELS = {
    'bytes': trained(pre_tokenizers.ByteLevel(add_prefix_space=False), 420, ALPHABET),
    'chars': dict(trained(pre_tokenizers.WhitespaceSplit(), 130, list('  \n')), unk_token='<unk>'),
    'fallback': fallback_model(),
    'words': words_model(),
    # A pending unknown stands behind the bytes that follow it; merges of unknowns and of bytes.
    'odd': {'type': 'BPE', 'unk_token': '?', 'byte_fallback': True, 'fuse_unk': False,
            'vocab': {'?': 0, 'a': 1, '<0xC3>': 2, '<0xA9>': 3, 'a?': 4, '??': 5, '<0xC3><0xA9>': 6,
                      'a?<0xC3>': 7, 'aa': 8},
            'merges': ['a ?', '? ?', '<0xC3> <0xA9>', 'a? <0xC3>', 'a a']},
}
GPT2 = {'type': 'ByteLevel', 'add_prefix_space': False, 'trim_offsets': True, 'use_regex': True}
RAW = dict(GPT2, use_regex=False)
DECODER = dict(GPT2, add_prefix_space=True)
CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LLAMA3 = CONTRACTIONS + (r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
                         r"|\s+(?!\S)|\s+")
O200K = '|'.join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + CONTRACTIONS + '?',
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + CONTRACTIONS + '?',
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"])


def split(regex, behavior='Isolated', invert=False, kind='Regex'):
    return {'type': 'Split', 'pattern': {kind: regex}, 'behavior': behavior, 'invert': invert}


def sequence(*parts, key='pretokenizers'):
    return {'type': 'Sequence', key: list(parts)}


def added(ident, content, **flags):
    token = dict(id=ident, content=content, single_word=False, lstrip=False, rstrip=False,
                 normalized=False, special=False)
    token.update(flags)
    return token


def metaspace(scheme, split_):
    return {'type': 'Metaspace', 'replacement': '▁', 'prepend_scheme': scheme, 'split': split_}


SPACES = {'type': 'Replace', 'pattern': {'String': ' '}, 'content': '▁'}
LLAMA2 = sequence({'type': 'Prepend', 'prepend': '▁'}, SPACES, key='normalizers')
UNSPACE = sequence({'type': 'Replace', 'pattern': {'String': '▁'}, 'content': ' '}, {'type': 'ByteFallback'},
                   {'type': 'Fuse'}, {'type': 'Strip', 'content': ' ', 'start': 1, 'stop': 0}, key='decoders')
REGEXES = [
    r"'s|\p{L}+|\d{2,3}", r'\w+|\W', r'[^\w]+', r'[\s\S]', r'\s*\n', r'(?=[A-Z])', r'(?<=[aeiou])', r'x*',
    r'[a-fx-z\-_]++', r'\p{N}{1,2}+', r'(?:ab|a){2}', r'.', r'^.', r'.$', r'\p{Lu}\p{Ll}*|\P{L}', r'\p{Han}+',
    r'[\p{Hiragana}\p{Katakana}]|[一-龥]', r'(?i:[a-e]+|THE)', r'a+?', r'[^\S\n]+', r'\x{e9}|\u00e0|\x41',
    r'\p{^L}+', r'(o)(w|g)?', r'(?>hel|hello)l', r'[\D]+', r'\t|\x0b|[\]\[]', r'a{,2}b', r'\p{P}|\p{S}|\p{M}',
    r'(?i:k|s)', r'\p{C}', r'[\W\d]', r'\s+(?!\S)', r'[\P{N}]+', r'ü|Ö', r'e(?!r)', r'(?<!e)r']


def cases():
    yield 'GPT-2', 'bytes', {'pre_tokenizer': GPT2, 'decoder': DECODER}
    yield 'prefix space', 'bytes', {'pre_tokenizer': dict(GPT2, add_prefix_space=True), 'decoder': DECODER}
    yield 'prefix space, no regex', 'bytes', {'pre_tokenizer': dict(RAW, add_prefix_space=True)}
    yield 'no split', 'bytes', {'pre_tokenizer': RAW, 'decoder': DECODER}
    for name, regex in (('llama3', LLAMA3), ('qwen2', LLAMA3.replace('{1,3}', '')), ('o200k', O200K)):
        for more in ({}, {'ignore_merges': True}):
            yield f'{name} {more}', 'bytes', {'pre_tokenizer': sequence(split(regex), RAW), 'decoder': DECODER}, more
    yield 'o200k, removed gaps', 'bytes', {'pre_tokenizer': sequence(split(O200K, 'Removed', True), RAW)}
    yield 'digits', 'bytes', {'pre_tokenizer': sequence({'type': 'Digits', 'individual_digits': True}, GPT2)}
    yield 'runs of digits', 'bytes', {'pre_tokenizer': sequence({'type': 'Digits', 'individual_digits': False}, RAW)}
    yield 'mapped early', 'bytes', {'pre_tokenizer': sequence(RAW, {'type': 'Digits', 'individual_digits': True})}
    yield 'mapped twice', 'bytes', {'pre_tokenizer': sequence(GPT2, RAW)}
    yield 'bytes missing', 'odd', {'pre_tokenizer': RAW}
    for flag in (False, True):
        yield f'ignore_merges {flag}', 'words', {'pre_tokenizer': GPT2, 'decoder': DECODER}, {'ignore_merges': flag}, [
            'abc abcabc über abc', 'abc', 'über', ' abc', 'abcb er abcer']
    for behavior in ('Removed', 'Isolated', 'MergedWithPrevious', 'MergedWithNext', 'Contiguous'):
        yield f'punctuation {behavior}', 'chars', {'pre_tokenizer': {'type': 'Punctuation', 'behavior': behavior}}
        for invert in (False, True):
            for kind, pattern in (('Regex', r'\s|[ae]'), ('String', 'w'), ('Regex', r'\d*'), ('String', 'he')):
                yield f'split {behavior} {invert} {kind} {pattern}', 'chars', {
                    'pre_tokenizer': split(pattern, behavior, invert, kind)}
    for regex in REGEXES:
        yield f'regex {regex}', 'chars', {'pre_tokenizer': split(regex)}
        yield f'regex {regex}, gaps removed', 'bytes', {'pre_tokenizer': sequence(split(regex, 'Removed', True), RAW)}
    yield 'whitespace', 'chars', {'pre_tokenizer': {'type': 'Whitespace'}}
    yield 'whitespace split', 'chars', {'pre_tokenizer': {'type': 'WhitespaceSplit'}}
    yield 'no pre-tokenizer, no decoder', 'chars', {}
    for scheme in ('always', 'first', 'never'):
        for split_ in (False, True):
            m = metaspace(scheme, split_)
            yield f'metaspace {scheme} {split_}', 'fallback', {'pre_tokenizer': m, 'decoder': m}, {}, None, [
                added(0, '<unk>', special=True), added(2000, '<s>', special=True)]
    yield 'metaspace in a sequence', 'fallback', {'pre_tokenizer': sequence(
        split('w', kind='String'), metaspace('always', True))}
    yield 'llama2', 'fallback', {'normalizer': LLAMA2, 'decoder': UNSPACE}
    yield 'llama2, no fusing', 'fallback', {'normalizer': LLAMA2, 'decoder': UNSPACE}, {'fuse_unk': False}
    yield 'llama2, no bytes', 'fallback', {'normalizer': LLAMA2}, {'byte_fallback': False}
    yield 'llama2, neither', 'fallback', {'normalizer': LLAMA2}, {'byte_fallback': False, 'fuse_unk': False}
    yield 'no unknown token', 'fallback', {'normalizer': LLAMA2}, {'byte_fallback': False, 'unk_token': None}
    yield 'odd unknowns', 'odd', {}, {}, ['aé', 'xé', 'xyé', 'axx', 'aé\u00c3', 'axéa', 'xxa', 'aax\u00e4xa']
    yield 'odd unknowns, fused', 'odd', {}, {'fuse_unk': True}, ['aé', 'xé', 'xyé', 'axx', 'axéa', 'xxa', 'xaäxya']
    for form in ('NFC', 'NFD', 'NFKC', 'NFKD', 'Lowercase'):
        # U+11A7 is no trailing consonant
        yield form, 'bytes', {'normalizer': {'type': form}, 'pre_tokenizer': GPT2, 'decoder': DECODER}, {}, TEXTS + [
            '\uac00\u11a7\uac00\u11a8', '\u1100\u1161\u11a7\u11a8', '\uac00\u11a7\u0301a\u11a7\u0301']
    for left in (False, True):
        for right in (False, True):
            yield f'strip {left} {right}', 'bytes', {
                'normalizer': {'type': 'Strip', 'strip_left': left, 'strip_right': right}, 'pre_tokenizer': GPT2}
    for kind, pattern, content in (('String', 'll', 'L'), ('Regex', r'\s+', ' '), ('Regex', r'(?=l)', '-'),
                                   ('String', 'a', ''), ('Regex', r'\d', '#')):
        yield f'replace {kind} {pattern}', 'bytes', {'normalizer': sequence(
            {'type': 'Replace', 'pattern': {kind: pattern}, 'content': content}, {'type': 'Prepend', 'prepend': 'x y'},
            key='normalizers'), 'pre_tokenizer': GPT2, 'decoder': DECODER}
    yield from added_cases()
    yield from other_cases()


def added_cases():
    # Public bug B55.
    texts = ['<think>a<think>', 'a<think><think>b', ' x <|x|> y', '<|x|>', '  <|x|>  <|x|>  ', 'password word, word',
             'word', 'words sword word word', '<a><b><a><a><b', '<a', 'Ölüm ÖlümÖ <Ö>', '<Ö>', 'Hello HELLO hello',
             'a\u0308bc', 'é<r>\t\n x<r>', '<r>  ', '_word word_ éword word\u0301', '<think', 'two words', '  two words']
    flags = [added(2000, '<think>'), added(2001, '<|x|>', lstrip=True, special=True), added(2002, 'word', single_word=True),
             added(2003, '<a>'), added(2004, '<a><b>'), added(2005, '<Ö>'), added(2006, '<r>', rstrip=True),
             added(2007, '  ', rstrip=True), added(2008, 'two words', lstrip=True, rstrip=True, single_word=True)]
    yield 'added tokens', 'bytes', {'pre_tokenizer': GPT2}, {}, texts, flags
    normal = [dict(token, normalized=True) for token in flags]
    yield 'normalised added tokens', 'bytes', {'pre_tokenizer': GPT2}, {}, texts, normal
    yield 'normalised and lower', 'bytes', {'normalizer': {'type': 'Lowercase'}, 'pre_tokenizer': GPT2}, {}, texts, [
        added(2000, 'Hello', normalized=True), added(2001, 'Ölüm', normalized=True), added(2002, 'HELLO world', special=True)]
    yield 'normalised and prepended', 'fallback', {'normalizer': LLAMA2, 'decoder': UNSPACE}, {}, texts + TEXTS[-4:], [
        added(0, '<unk>', special=True), added(2000, '<s>', normalized=True),
        added(2001, '</s>', special=True), added(2002, 'word', normalized=True, single_word=True)]
    yield 'composed added tokens', 'bytes', {'normalizer': {'type': 'NFC'}, 'pre_tokenizer': dict(
        GPT2, add_prefix_space=True)}, {}, texts, [added(2000, 'a\u0308', normalized=True), added(2001, '\u00c0\u00e9', normalized=True)]


def template(single, **tokens):
    return {'type': 'TemplateProcessing',
            'single': [{'Sequence': {'id': 'A', 'type_id': 0}} if x == 'A' else {'SpecialToken': {'id': x, 'type_id': 0}}
                       for x in single],
            'pair': [{'Sequence': {'id': 'A', 'type_id': 0}}, {'Sequence': {'id': 'B', 'type_id': 1}}],
            'special_tokens': {k: {'id': k, 'ids': v, 'tokens': ['x'] * len(v)} for k, v in tokens.items()}}


def other_cases():
    BEGIN, END = len(MODELS['bytes']['vocab']), len(MODELS['bytes']['vocab']) + 1
    # Public bug B47: in front, on both sides, neither, twice.
    tokens = [added(2000, '<s>', special=True), added(2001, '</s>', special=True)]
    begin, both = template(['S', 'A'], S=[BEGIN]), template(['S', 'A', 'E'], S=[BEGIN], E=[END, END])
    bytes_ = dict(GPT2, trim_offsets=False)
    for name, post in (('begin', begin), ('both', both), ('bytes', bytes_),
                       ('sequence', sequence(bytes_, both, bytes_, key='processors')),
                       ('bert', {'type': 'BertProcessing', 'sep': ['</s>', END], 'cls': ['<s>', BEGIN]}),
                       ('roberta', {'type': 'RobertaProcessing', 'sep': ['</s>', END], 'cls': ['<s>', BEGIN],
                                    'trim_offsets': True, 'add_prefix_space': True})):
        yield f'template {name}', 'bytes', {'pre_tokenizer': GPT2, 'post_processor': post, 'decoder': DECODER}, {}, [
            'a', 'b', '', '<s>a</s>'], tokens
    strip = {'type': 'Strip', 'content': 'h', 'start': 2, 'stop': 0}
    for name, decoder in (('fuse', {'type': 'Fuse'}), ('strip', strip), ('strip right', dict(strip, start=0, stop=1, content='o')),
                          ('fused strip', sequence({'type': 'Fuse'}, dict(strip, stop=2, content='a'), key='decoders')),
                          ('replace', {'type': 'Replace', 'pattern': {'Regex': r'l+'}, 'content': 'L'}),
                          ('byte-level strip', sequence(DECODER, dict(strip, content='a'), key='decoders'))):
        yield f'decoder {name}', 'bytes', {'pre_tokenizer': GPT2, 'decoder': decoder}, {}, [
            'hello world', 'hhhello', 'aaa', 'banana a', 'fooo', 'aabaa']


def refused():
    base = {'pre_tokenizer': GPT2}
    yield 'WordPiece', 'bytes', {'model': {'type': 'WordPiece'}}, 'WordPiece'
    yield 'a normalizer', 'bytes', {'normalizer': {'type': 'BertNormalizer'}}, 'normalizer: `BertNormalizer`'
    yield 'a pre-tokenizer', 'bytes', {'pre_tokenizer': sequence(GPT2, {'type': 'UnicodeScripts'})}, \
        'pretokenizers[1]: `UnicodeScripts`'
    yield 'a decoder', 'bytes', dict(base, decoder={'type': 'CTC'}), 'decoder: `CTC`'
    yield 'a post-processor', 'bytes', dict(base, post_processor={'type': 'New'}), 'post_processor: `New`'
    yield 'a key', 'bytes', {'pre_tokenizer': dict(GPT2, magic=1)}, 'key `magic`'
    yield 'dropout', 'bytes', dict(base, model={'dropout': 0.1}), 'model.dropout'
    yield 'a suffix', 'bytes', dict(base, model={'end_of_word_suffix': '</w>'}), 'end_of_word_suffix'
    yield 'truncation', 'bytes', dict(base, truncation={'max_length': 5}), 'truncation'
    for regex in (r'\bx', r'(a)\1', r'[[:alpha:]]', r'(?i)a', r'[a&&b]', r'\h', r'(?i:ss)', r'a**', r'(?<n>a)', r'a{2}?',
                  r'\p{Greek_Extended}', r'(?:a', r'a)', r'[a', r'\xff', r'(?i:[^a])', r'\G', r'\p{Lx}', r'(?i:\p{Lu})'):
        yield f'regex {regex}', 'bytes', {'pre_tokenizer': split(regex)}, 'expression'
    yield 'a wrong id', 'bytes', dict(base, added_tokens=[added(500, '<x>')]), '<x>` has the id 500'
    yield 'a token twice', 'bytes', dict(base, added_tokens=[added(0, '<unk>'), added(0, '<unk>', lstrip=True)]), 'twice'
    yield 'a merge without token', 'words', dict(base, model={'merges': ['a r']}), 'merges[0]: `ar`'
    yield 'a merge of three', 'words', dict(base, model={'merges': ['a b c']}), 'merges[0]'
    yield 'an id twice', 'words', dict(base, model={'vocab': {'a': 0, 'b': 0}, 'merges': []}), 'two tokens have the id 0'
    yield 'a large id', 'words', dict(base, model={'vocab': {'a': 2 ** 31}, 'merges': []}), 'no integer from 0 to'
    yield 'a template without text', 'bytes', dict(base, post_processor=template(['S'], S=[1])), 'the text is not in it'
    yield 'an absent template token', 'bytes', dict(base, post_processor=template(['S', 'A'])), 'not in special_tokens'
    yield 'two templates', 'bytes', dict(base, post_processor=sequence(
        template(['S', 'A'], S=[1]), template(['A', 'S'], S=[1]), key='processors')), 'already'
    yield 'an unknown template id', 'bytes', dict(base, post_processor=template(['S', 'A'], S=[999])), 'id 999'
    yield 'metaspace first behind a strip', 'fallback', {
        'normalizer': {'type': 'Strip', 'strip_left': True, 'strip_right': False},
        'pre_tokenizer': metaspace('first', True)}, 'first'
    yield 'replace behind fuse', 'bytes', dict(base, decoder=sequence(
        {'type': 'Fuse'}, {'type': 'ByteFallback'}, key='decoders')), 'behind Fuse'


def whole(model, parts, options, tokens):
    t = dict(version='1.0', truncation=None, padding=None, added_tokens=tokens, normalizer=None, pre_tokenizer=None,
             post_processor=None, decoder=None)
    t.update(parts)
    t['model'] = dict(MODELS[model], **options)
    return t


def renumber(model, tokens):
    """Ids from 2000 are the next free ones, which depend on the model."""
    n = len(MODELS[model]['vocab'])
    return [dict(t, id=t['id'] - 2000 + n if t['id'] >= 2000 else t['id']) for t in tokens]


def short(o):
    return json.dumps(o, ensure_ascii=False, separators=(',', ':'))


def decoded(t, ids, skip):
    try:
        return t.decode(ids, skip_special_tokens=skip)
    except BaseException:  # the library's Strip panics where the two ends meet
        return None


def main():
    out = []
    for name, model, parts, *more in cases():
        options, texts, tokens = (more + [{}, None, []][len(more):])[:3]
        tokens = renumber(model, tokens)
        texts = texts or (TEXTS[3::3] if name.startswith(('regex', 'split', 'punct')) else TEXTS)
        t = Tokenizer.from_str(json.dumps(whole(model, parts, options, tokens)))
        rows = []
        for text in texts:
            ids, special = t.encode(text, add_special_tokens=False).ids, t.encode(text).ids
            row = [text, ids, decoded(t, special, False), decoded(t, special, True)]
            if ids == special and row[2] == row[3]:
                row = row[:3]
            rows.append(row if ids == special else row + [special])
        out.append(dict(name=name, model=model, options=options, parts=parts, added=tokens, rows=rows))
    no = [dict(name=n, model=m, parts=p, why=w) for n, m, p, w in refused()]
    print('{"made_with": "tokenizers %s",\n"models": %s,' % (tokenizers.__version__, short(MODELS)))
    print('"cases": [\n%s],' % ',\n'.join(map(short, out)))
    print('"refused": [\n%s]}' % ',\n'.join(map(short, no)))


if __name__ == '__main__':
    sys.exit(main())

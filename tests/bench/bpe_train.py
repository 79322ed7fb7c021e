"""One training by another tool, 32,000 tokens of the GPT-2 pattern: bpe_train.py TOOL OUT FILE prints its seconds."""
import sys
import time

tool, out, path = sys.argv[1:]
if tool == 'tokenizers':
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=32000, special_tokens=['<|endoftext|>'], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    begin = time.perf_counter()
    tokenizer.train([path], trainer)
    tokenizer.save(out)
elif tool == 'gigabpe':
    import gigabpe
    begin = time.perf_counter()
    gigabpe.train_tokenizer([path], vocab_size=32000, output=out, pretokenizer='bytelevel',
                            special_tokens=['<|endoftext|>'], threads=2)
elif tool == 'rustbpe':
    import rustbpe
    pattern = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
    begin = time.perf_counter()
    with open(path, encoding='utf-8', newline='') as f:
        rustbpe.Tokenizer().train_from_iterator(f, 32000, pattern=pattern)
else:
    sys.exit('tokenizers, gigabpe or rustbpe')
print('%.3f' % (time.perf_counter() - begin))

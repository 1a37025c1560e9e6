"""peer_torch.py MODEL PRECISION BATCH MICRO_BATCHES STEPS [ATTENTION] - the step of examples/train_gpt in PyTorch, compiled, on the GPU there is (else on
the processor, not compiled): the same network, AdamW, gradients accumulated and clipped. bf16 is autocast's: weights are kept in float.
ATTENTION: default, which PyTorch chooses, or cudnn.
Prints {"seconds": [...], "version": ..., "device": ...}."""
import contextlib
import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

SIZES = {  # layers, hidden, heads, seq, vocab, wide, as in zoo/gpt.hpp, the vocabulary filled up to a multiple of 128
    "tiny": (2, 64, 4, 64, 256, 256),
    "gpt2_124m": (12, 768, 12, 1024, 50304, 3072),
    "gpt2_774m": (36, 1280, 20, 1024, 50304, 5120),
    "gpt2_1b5": (48, 1600, 25, 1024, 50304, 6400),
}


class Block(nn.Module):
    def __init__(self, hidden, heads, wide):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, wide), nn.Linear(wide, hidden)

    def forward(self, x):
        b, s, h = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, s, 3, self.heads, h // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, s, h))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, layers, hidden, heads, seq, vocab, wide):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab, hidden), nn.Embedding(seq, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads, wide) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)
        nn.init.normal_(self.tokens.weight, std=0.02)
        nn.init.normal_(self.positions.weight, std=0.02)

    def forward(self, x, labels):
        y = self.tokens(x) + self.positions(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            y = block(y)
        logits = F.linear(self.norm(y), self.tokens.weight)
        return F.cross_entropy(logits.float().view(-1, logits.shape[-1]), labels.reshape(-1))


def main():
    model, precision = sys.argv[1:3]
    batch, micro, steps = map(int, sys.argv[3:6])
    gpu = torch.cuda.is_available()
    device = "cuda" if gpu else "cpu"
    torch.manual_seed(1)
    net = GPT(*SIZES[model]).to(device)
    seq, vocab = SIZES[model][3], SIZES[model][4]
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4, weight_decay=0.1, fused=gpu)
    run = torch.compile(net) if gpu else net
    x = torch.randint(vocab, (batch, seq + 1), device=device)
    seconds = []
    chosen = contextlib.nullcontext()
    if sys.argv[6:7] == ["cudnn"]:
        from torch.nn.attention import SDPBackend, sdpa_kernel
        chosen = sdpa_kernel([SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION], set_priority=True)
    with chosen:
        train(net, run, optimizer, x, micro, steps, precision, device, seconds)
    print(json.dumps({"seconds": seconds, "version": torch.__version__,
                      "device": torch.cuda.get_device_name() if gpu else "processor"}))


def train(net, run, optimizer, x, micro, steps, precision, device, seconds):
    gpu = device == "cuda"
    for _ in range(steps):
        if gpu:
            torch.cuda.synchronize()
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        for part in x.chunk(micro):
            with torch.autocast(device, dtype=torch.bfloat16, enabled=precision == "bf16"):
                loss = run(part[:, :-1], part[:, 1:])
            (loss / micro).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        loss.item()
        if gpu:
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)


main()

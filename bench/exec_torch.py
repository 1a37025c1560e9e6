"""exec_torch.py ROWS STEPS - the training step of bench/exec.cpp in PyTorch on one CPU thread; prints the median seconds and PyTorch's version."""
import statistics
import sys
import time

import torch

rows, steps = int(sys.argv[1]), int(sys.argv[2])
torch.set_num_threads(1)
torch.manual_seed(1)
layers = [torch.nn.Linear(4096, 4096) for _ in range(4)]
model = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1], torch.nn.ReLU(), layers[2], torch.nn.ReLU(), layers[3])
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x, y = torch.rand(rows, 4096) - 0.5, torch.rand(rows, 4096) - 0.5
seconds = []
for _ in range(steps + 1):
    start = time.perf_counter()
    optimizer.zero_grad(set_to_none=True)
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
    seconds.append(time.perf_counter() - start)
print(statistics.median(seconds[1:]), torch.__version__)

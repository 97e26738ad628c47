"""A plain DDP script, as people write them: it knows nothing of Trainyard but its checkpoint directory.

    torchrun ddp_job.py STEPS        (or any launcher that sets RANK, WORLD_SIZE, MASTER_ADDR, ...)

With 0 steps it trains until it is told to stop, then rank 0 saves and all exit with 75.
"""

import os
import signal
import sys

import torch
import torch.distributed as dist

steps, place, asked = int(sys.argv[1]), os.environ["TRAINYARD_CHECKPOINT_DIR"], []
signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
step, stop = 0, torch.zeros(1)
while (step < steps or not steps) and not stop:
    optimizer.zero_grad()
    model(torch.ones(8, 4) * (rank + 1)).square().mean().backward()
    optimizer.step()
    step += 1
    stop = torch.tensor([float(bool(asked))])
    dist.all_reduce(stop)
    if step == 1:
        open(f"{place}/ready{rank}", "w").close()
weights = [torch.zeros(1, 4) for _ in range(dist.get_world_size())]
dist.all_gather(weights, model.module.weight.data)
same = all(torch.equal(weights[0], other) for other in weights)
with open(f"{place}/rank{rank}", "w") as file:
    file.write(f"{dist.get_world_size()} {os.environ['LOCAL_RANK']} {same}")
if rank == 0:
    torch.save(model.state_dict(), f"{place}/model.pt")
dist.destroy_process_group()
sys.exit(75 if stop else 0)

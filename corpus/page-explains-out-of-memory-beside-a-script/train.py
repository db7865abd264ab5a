"""Trains a model on all the cards of a node."""
import os
import sys

import torch
import torch.distributed as dist


def check_memory(device, needed):
    free, total = torch.cuda.mem_get_info(device)
    if free < needed:
        raise RuntimeError("CUDA out of memory. Tried to allocate {} bytes; {} of {} are free".format(needed, free, total))


def main():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    check_memory(device, 8 << 30)
    try:
        train(rank, device)
    except RuntimeError as error:
        if "NCCL error" in str(error):
            print("NCCL error: unhandled system error, restart the job", file=sys.stderr)
        raise
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

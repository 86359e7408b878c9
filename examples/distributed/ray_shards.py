# SPDX-License-Identifier: Apache-2.0
"""A corpus worked on by a Ray cluster (`pip install ray`): each actor keeps a heed process with its model open and gives
it one shard after the other; a shard that fails is tried again, by whichever actor is free.

  python ray_shards.py --workers 16 --shards 64 --out work --in corpus.txt -- heed translate --model /shared/model --beam 4
  heed merge work --out translations.txt

The files and --out are on a file system that all nodes share, under the same names.
"""
import argparse
import collections
import os
import subprocess
import sys
import time

import ray

PAUSE = 2.0  # seconds, before a shard is looked at again that another process still has


# An actor that dies is started again, and its shard with it; what the script sees is a shard that has failed otherwise.
@ray.remote(max_restarts=-1, max_task_retries=4)
class Worker:
    """A heed process that reads the numbers of shards, a line each, and answers each with a line."""

    def __init__(self, command):
        self.command = command
        self.process = None

    def work(self, shard):
        if self.process is None or self.process.poll() is not None:
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(self.command, stdin=pipe, stdout=pipe, text=True)
        try:
            self.process.stdin.write(f"{shard}\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:  # its error is in the log of the actor
            raise RuntimeError(f"shard {shard}: heed ended with code {self.process.wait()}")
        return answer.strip()


class Shards:
    """Which shards are left, and how often each has failed."""

    def __init__(self, count, tries):
        self.waiting = collections.deque(range(1, count + 1))
        self.failures = collections.Counter()
        self.tries = tries

    def finish(self, shard, result):
        """Of a call that has ended; ray.get throws where the heed process has, or its actor dies again and again."""
        try:
            answer = ray.get(result)
        except ray.exceptions.RayError as error:
            self.failures[shard] += 1
            why = str(error).strip().splitlines()[-1]
            if self.failures[shard] == self.tries:
                sys.exit(f"shard {shard} has failed {self.tries} times, the last: {why}")
            print(f"shard {shard} is tried again: {why}", flush=True)
            time.sleep(PAUSE)
            self.waiting.append(shard)
            return
        print(answer, flush=True)
        if " busy: " in answer:  # the process of an actor that was killed finishes its shard alone
            time.sleep(PAUSE)
            self.waiting.append(shard)


def run(workers, shards):
    free, running = list(workers), {}
    while shards.waiting or running:
        while shards.waiting and free:
            worker, shard = free.pop(), shards.waiting.popleft()
            running[worker.work.remote(shard)] = worker, shard
        ended, _ = ray.wait(list(running))
        worker, shard = running.pop(ended[0])
        free.append(worker)
        shards.finish(shard, ended[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2, help="actors, each with a process and its model")
    parser.add_argument("--shards", type=int, required=True, help="some for each worker, so that none waits long at the end")
    parser.add_argument("--threads", type=int, default=1, help="of each worker: what Ray reserves, and heed takes")
    parser.add_argument("--tries", type=int, default=5, help="of a shard, before all is given up")
    parser.add_argument("--in", dest="files", nargs="+", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("command", nargs="+", help="after --: heed translate, tag, embed or score, with its flags")
    options = parser.parse_args()
    command = options.command + ["--threads", str(options.threads), "--shard", f"-/{options.shards}"]
    command += ["--in", *map(os.path.abspath, options.files), "--out", os.path.abspath(options.out)]
    ray.init()
    workers = [Worker.options(num_cpus=options.threads).remote(command) for _ in range(options.workers)]
    run(workers, Shards(options.shards, options.tries))


if __name__ == "__main__":
    main()

// graphile-worker with a local queue and batches, which its documentation recommends for throughput.
import fs from 'node:fs';
import { createRequire } from 'node:module';
const { Logger, makeWorkerUtils, run, runMigrations } = createRequire(`${process.env.BENCH_PACKAGES}/`)('graphile-worker');

const [command, options] = [process.argv[2], JSON.parse(process.argv[3])];
const connectionString = process.env.DATABASE_URL;
const logger = new Logger(() => () => {});
const now = () => Number(process.hrtime.bigint());

function write(name, content) {
  const file = `${process.env.BENCH_FOLDER}/${name}.${process.pid}`;
  fs.writeFileSync(`${file}.draft`, JSON.stringify(content));
  fs.renameSync(`${file}.draft`, file);
}

async function timed(count, enqueue) {
  const began = now();
  await enqueue();
  write('rate', (count / (now() - began)) * 1e9);
}

async function work() {
  let first = true;
  const calls = [];
  const nothing = async ({ number }) => {
    if (first) { first = false; write('first', now()); }
    if (options.record) {
      calls.push([number, now()]);
      if (calls.length === options.record) write('calls', calls);
    }
  };
  const worker = {
    connectionString, concurrentJobs: options.concurrency, maxPoolSize: options.pool,
    localQueue: { size: options.queue }, completeJobBatchDelay: 0, failJobBatchDelay: 0,
  };
  const runner = await run({ logger, preset: { worker }, noHandleSignals: false, taskList: { nothing } });
  await runner.promise;
}

async function enqueue() {
  const utils = await makeWorkerUtils({ connectionString, logger });
  const { count, chunk, keyed } = options;
  if (command === 'single') {
    await timed(count, async () => {
      for (let number = 0; number < count; number++) await utils.addJob('nothing', { number });
    });
  } else {
    await timed(count, async () => {
      for (let first = 0; first < count; first += chunk) {
        const length = Math.min(chunk, count - first);
        const numbers = Array.from({ length }, (_, index) => first + index);
        await utils.addJobs(numbers.map((number) => ({
          identifier: 'nothing', payload: { number }, ...(keyed && { jobKey: `order-${number}` }),
        })));
      }
    });
  }
  await utils.release();
}

if (command === 'setup') await runMigrations({ connectionString, logger });
else if (command === 'worker') await work();
else await enqueue();

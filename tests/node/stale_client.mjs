// One metadata update as Claude Code makes it: the task is read first, without the lock; the patch is merged into that
// read and written under the lock, later.
//
//   node stale_client.mjs LIST TASK KEY
//
// Prints {"ready":true} after the read and waits for "go" on stdin before it takes the lock.

import { started } from './barrier.mjs';
import { getTask, patchedMetadata, updateTask } from './list.mjs';

const [dir, id, key] = process.argv.slice(2);
const before = await getTask(dir, id);
await started();
await updateTask(dir, id, () => ({ metadata: patchedMetadata(before.metadata, { [key]: "the client's" }) }));

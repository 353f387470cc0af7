// Starts aimock on a free port of this machine with the fixtures of a file, prints its address as one line, and stays until its
// standard input is closed: it ends with whoever started it, also where that one was killed. Unlike aimock's own command line it
// needs no port given and leaves nothing behind.
import { argv, exit, stdin, stdout } from "node:process";
import { LLMock } from "@copilotkit/aimock";

const mock = new LLMock({ host: "127.0.0.1", port: 0, strict: true, chunkSize: 5, journalMaxEntries: 0 });
mock.loadFixtureFile(argv[2]);
stdout.write(`${await mock.start()}\n`);
stdin.resume();
stdin.on("end", () => exit(0));
stdin.on("error", () => exit(0));

// The engine in a worker, where the peers have theirs.
import { serve } from "../src/worker/serve.ts";

serve();

// Runs Wherry's engine in a worker, because the other engines run in workers, too.
import { serve } from "../src/worker/serve.ts";

serve();

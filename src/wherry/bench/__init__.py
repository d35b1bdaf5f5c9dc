"""Load tests of a server of OpenAI's API, or of an engine in this process.

    workload, trace   the requests and their times
    target            receives them: http_target (any URL), engine_target (this process)
    load              sends requests, in a closed loop or at given times
    report            percentiles and rates; table and picture show them

`measure` runs one load test, from its plan to its outcomes.
"""

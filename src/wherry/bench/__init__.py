"""Measures what a server of OpenAI's API, or an engine in this process, does under load.

    workload, trace   what is asked, and when
    target            who is asked: http_target (any URL), engine_target (this process)
    load              asks, in a closed loop or at given times
    report            percentiles and rates; table and picture show them

`measure` does one benchmark, from its plan to its outcomes.
"""

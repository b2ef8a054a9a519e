"""
Background jobs: work that outlives whoever started it, and never lies about how it ended.

    model       what a job is: its record, how it ended
    folder      where a job lives on disk
    ids         names of jobs
    keeper/     the small process that looks after one job; everything it loads, it keeps in memory
    starting    from a wish to a job: fork server or a keeper of its own
    looking     any job, by any process: what is known of it now
    ending      an end is written once, whoever races to write it
    news        what its starter is told of it, signed
    notices     news on its way to a receiver, or to the next in line (heirs); outboxes: all boxes together
    notice_text what models are told; batch: how much of it at once
    events      the one stream of all that happens, read (event_stream: as files; telling: what it is told, once;
                sdk_messages: in whose words; deaths: of keepers, heard at once)
    verify      whether what looks like a notice is one
    sinks       where news goes besides: desktop, bell, webhook, command
    finding     the folder of a job, by an id from outside
    output      what a job printed, in parts by offset (output_file: how its file is opened; output_text: made safe
                to show; follow_output: as it grows)
    gc          what ended jobs may keep on disk (ended: what stays known of them; sweeping: folders removed)
"""

use super::*;
use crate::interleave::{
    ClockInterrupts, InterleaveInputs, InterleaveReport, SerialInput, SerialMethod, ServiceTimes,
    TrackFormat, calculate_interleave,
};

fn inputs() -> InterleaveInputs {
    InterleaveInputs {
        track: TrackFormat {
            rpm: 3600.0,
            sectors_per_track: 17,
            spare_sectors_per_track: 0,
            sector_bytes: 512,
        },
        service: ServiceTimes {
            driver_ms: 0.6,
            system_call_ms: 1.8,
            ..ServiceTimes::default()
        },
        cpu_speed: 1.0,
        clock_interrupts: Some(ClockInterrupts {
            frequency_hz: 60.0,
            tick_ms: 1.2,
        }),
        serial_input: None,
        has_read_ahead: false,
        outstanding_reads: 1,
    }
}

fn found() -> InterleaveReport {
    calculate_interleave(&inputs(), None).unwrap()
}

#[test]
fn an_interleave_factor() {
    assert_snapshot!(render_interleave(&found(), ReportFormat::Table, 80, None), @r"
    Interleave: 17 sectors of 512 bytes, 3600 rpm: 16.667 ms a revolution, 0.980 ms
    a sector
    interlace time 2.400 ms = 2.45 sectors: factor 4 without interruptions; with
    interruptions 2.616 ms on average

    service                           ms
    ────────────────────────────────────
    driver's interrupt processing  0.600
    read system call               1.800
    interlace time                 2.400

    clock tick: 1.200 ms every 16.667 ms, 7.2% of the processor

    factor  missed  revolutions lost  KB/s
    ────────────────────────────────────────────
         1  100.0%            1.0000  28.3
         2  100.0%            1.0000  26.8
         3  100.0%            1.0000  25.5
         4   18.2%            0.1821  71.9
         5    0.0%            0.0000   102  best
         6    0.0%            0.0000  85.0
         7    0.0%            0.0000  72.9
         8    0.0%            0.0000  63.8

    recommended: factor 5, 102 KB/s
    responsible: the clock; without, factor 4 would be best
    ");
}

#[test]
fn all_that_can_be_said_of_an_interleave_factor() {
    let mut inputs = inputs();
    inputs.track.spare_sectors_per_track = 1;
    inputs.cpu_speed = 2.0;
    inputs.serial_input = Some(SerialInput {
        line_count: 2,
        baud_rate: 1200,
        method: SerialMethod::Dma,
        us_per_char: 0.0,
        completion_us_per_char: 225.0,
        buffer_chars: 24,
        raw_wakeup_us: Some(100.0),
    });
    inputs.has_read_ahead = true;
    inputs.outstanding_reads = 2;
    let found = calculate_interleave(&inputs, Some(6)).unwrap();
    assert_snapshot!(render_interleave(&found, ReportFormat::Table, 80, Some(6)), @r"
    Interleave: 17 sectors of 512 bytes and 1 spare, 3600 rpm: 16.667 ms a
    revolution, 0.926 ms a sector
    interlace time 1.200 ms (processor times divided by 2) = 1.30 sectors: factor 3
    without interruptions; with interruptions 1.327 ms on average

    service                           ms
    ────────────────────────────────────
    driver's interrupt processing  0.300
    read system call               0.900
    interlace time                 1.200

    clock tick: 0.600 ms every 16.667 ms, 3.6% of the processor
    buffer of a line: 2 times 2.700 ms every 200.000 ms, 2.7% of the processor
    wake-up at a character: 2 times 0.050 ms every 8.333 ms, 1.2% of the processor

    factor  missed  revolutions lost  KB/s
    ────────────────────────────────────────────
         1   30.1%            0.3006  83.5
         2    1.7%            0.0165   224  best
         3  0.024%            0.0002   170
         4    0.0%            0.0000   127
         5    0.0%            0.0000   102
         6    0.0%            0.0000  85.0

    recommended: factor 2, 224 KB/s
    responsible: the service time itself
    factor 6: 85.0 KB/s, 38.0% of the best
    with 2 requests outstanding the service is hidden behind the transfers: factor 1
      works while a single service takes no more than 0.926 ms (1 sector) and
      services on average no more than 0.926 ms (1 sector), since one processor
      serves all
    read-ahead averages two consecutive service times: rare interrupts disturb half
      as much, constant work as much as before
    ");
}

#[test]
fn an_interleave_factor_for_other_programs() {
    assert_snapshot!(render_interleave(&found(), ReportFormat::Csv, 0, None).replace("\r\n", "\n"), @r"
    factor,missed_share,lost_revolutions,kb_per_s,modelled_kb_per_s,recommended,responsible,service_ms,service_sectors,uninterrupted_factor
    1,1,1,28.333333333333332,,false,clock,2.4,2.448,4
    2,1,1,26.842105263157894,,false,clock,2.4,2.448,4
    3,1,1,25.5,,false,clock,2.4,2.448,4
    4,0.18212890625000003,0.18212890625000003,71.86953829216266,,false,clock,2.4,2.448,4
    5,0,0,102,,true,clock,2.4,2.448,4
    6,0,0,84.99999999999999,,false,clock,2.4,2.448,4
    7,0,0,72.85714285714285,,false,clock,2.4,2.448,4
    8,0,0,63.75,,false,clock,2.4,2.448,4
    ");
    let json: serde_json::Value =
        serde_json::from_str(&render_interleave(&found(), ReportFormat::Json, 0, None)).unwrap();
    assert_eq!(json["recommended"]["factor"], 5);
    assert_eq!(json["responsible"], "clock");
    assert_eq!(json["factor_without"], 4);
    assert_eq!(json["interruptions"][0]["interrupt"], "clock_tick");
    assert_eq!(json["factors"].as_array().unwrap().len(), 8);
    assert_eq!(json["inputs"]["serial"], serde_json::Value::Null);
    let markdown = render_interleave(&found(), ReportFormat::Markdown, 0, None);
    assert!(markdown.contains("| 5 | 0.0% |"), "{markdown}");
}

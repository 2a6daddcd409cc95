use super::*;

mod bass;
mod properties;

/// A track of 17 sectors at 3600 rpm: most 5 MB drives of 5 1/4 inches.
fn small_drive() -> InterleaveInputs {
    InterleaveInputs {
        track: TrackFormat {
            rpm: 3600.0,
            sectors_per_track: 17,
            spare_sectors_per_track: 0,
            sector_bytes: 512,
        },
        service: ServiceTimes::default(),
        cpu_speed: 1.0,
        clock_interrupts: None,
        serial_input: None,
        has_read_ahead: false,
        outstanding_reads: 1,
    }
}

/// A small drive with a service time of this many sectors.
fn inputs_with_service(sectors: f64) -> InterleaveInputs {
    let mut inputs = small_drive();
    inputs.service.driver_ms = sectors * inputs.track.sector_ms();
    inputs
}

/// With a 60 Hz clock whose ticks take so many sectors.
fn inputs_with_ticks(mut inputs: InterleaveInputs, sectors: f64) -> InterleaveInputs {
    inputs.clock_interrupts = Some(ClockInterrupts {
        frequency_hz: 60.0,
        tick_ms: sectors * inputs.track.sector_ms(),
    });
    inputs
}

fn calculated(inputs: &InterleaveInputs) -> InterleaveReport {
    calculate_interleave(inputs, None).unwrap()
}

fn lines(lines: u32, method: SerialMethod) -> SerialInput {
    SerialInput {
        line_count: lines,
        baud_rate: 9600,
        method,
        us_per_char: method.us_per_char().unwrap_or(0.0),
        completion_us_per_char: method.completion_us_per_char().unwrap_or(0.0),
        buffer_chars: 24,
        raw_wakeup_us: None,
    }
}

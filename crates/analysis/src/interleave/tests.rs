use super::*;

mod bass;
mod properties;

/// A track of 17 sectors at 3600 rpm: most 5 MB drives of 5 1/4 inches.
fn small_drive() -> Inputs {
    Inputs {
        track: Track {
            rpm: 3600.0,
            sectors_per_track: 17,
            spare_sectors_per_track: 0,
            sector_bytes: 512,
        },
        service: Service::default(),
        cpu_speed: 1.0,
        clock: None,
        serial: None,
        read_ahead: false,
        outstanding: 1,
    }
}

/// A small drive with a service time of this many sectors.
fn inputs_with_service(sectors: f64) -> Inputs {
    let mut inputs = small_drive();
    inputs.service.driver_ms = sectors * inputs.track.sector_ms();
    inputs
}

/// With a 60 Hz clock whose ticks take so many sectors.
fn inputs_with_ticks(mut inputs: Inputs, sectors: f64) -> Inputs {
    inputs.clock = Some(Clock {
        hz: 60.0,
        tick_ms: sectors * inputs.track.sector_ms(),
    });
    inputs
}

fn calculated(inputs: &Inputs) -> Interleave {
    calculate(inputs, None).unwrap()
}

fn lines(lines: u32, method: SerialMethod) -> Serial {
    Serial {
        lines,
        baud: 9600,
        method,
        us_per_char: method.us_per_char().unwrap_or(0.0),
        done_us_per_char: method.done_us_per_char().unwrap_or(0.0),
        buffer_chars: 24,
        raw_wakeup_us: None,
    }
}

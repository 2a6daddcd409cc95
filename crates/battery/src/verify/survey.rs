//! Blocks of a run that drew its offsets or sizes in an order of its own: which blocks it wrote,
//! and with which seeds, is not known before they are read.

use super::record::{BlockPlace, BlockRecord, WriteState};
use super::{Block, NAMED_MAX, Purpose, Unread, Verifier};
use crate::program::ProgramError;
use diskperf_fio::verify::{Expectation, MAGIC, Mismatch};

/// Search for the blocks of such a run. The blocks that this program's order leaves are
/// compared first: where more than half of them are as they would be, this program wrote all,
/// and the others differ. Else all places are read, and each header that is found vouches for
/// its data.
pub(crate) struct Survey {
    /// Smallest part of a file that has a header of its own.
    unit_bytes: u32,
    /// Whether each write is of one unit, so that its data follows from its seed.
    is_one_write: bool,
    /// Parts of the files, in the order of the files.
    parts: Vec<Part>,
    /// File and unit that are read next; nothing before all places are read.
    next: Option<(usize, u64)>,
    /// Blocks that are as this program would have written them.
    matched: u64,
    /// Blocks that are not.
    differing: u64,
    /// The first of them, each with its bytes and its difference.
    differences: Vec<(Block, Vec<u8>, String)>,
}

/// Part of a file that the job uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) start_bytes: u64,
    pub(crate) units: u64,
}

impl Survey {
    /// The search in parts of files.
    pub(crate) fn new(unit_bytes: u32, is_one_write: bool, parts: Vec<Part>) -> Self {
        Self {
            unit_bytes,
            is_one_write,
            parts,
            next: None,
            matched: 0,
            differing: 0,
            differences: Vec::new(),
        }
    }

    /// Places that are not read.
    fn unread(&self) -> u64 {
        let Some((file, unit)) = self.next else {
            return 0;
        };
        let parts = self.parts.iter().skip(file);
        let units: u64 = parts.map(|part| part.units).sum();
        units.saturating_sub(unit)
    }

    /// Takes the place of the next unit; nothing where all are taken.
    fn take(&mut self) -> Option<BlockPlace> {
        let (file, unit) = self.next.as_mut()?;
        while *unit >= self.parts.get(*file)?.units {
            (*file, *unit) = (*file + 1, 0);
        }
        let place = BlockPlace {
            file: *file,
            offset_bytes: self.parts[*file].start_bytes + *unit * u64::from(self.unit_bytes),
        };
        *unit += 1;
        Some(place)
    }
}

impl Verifier {
    fn survey(&mut self) -> Option<&mut Survey> {
        self.other_run.as_mut()?.survey.as_mut()
    }

    /// Places that a search has still to read.
    pub(super) fn places_to_search(&self) -> u64 {
        let other = self.other_run.as_ref();
        let survey = other.and_then(|other| other.survey.as_ref());
        survey.map_or(0, Survey::unread)
    }

    /// Whether blocks are judged by a search.
    pub(super) fn is_surveying(&self) -> bool {
        let other = self.other_run.as_ref();
        other.is_some_and(|other| other.survey.is_some())
    }

    /// Whether all places are read.
    pub(super) fn is_reading_units(&self) -> bool {
        let other = self.other_run.as_ref();
        let survey = other.and_then(|other| other.survey.as_ref());
        survey.is_some_and(|survey| survey.next.is_some())
    }

    /// Begins to read all places, where another program wrote the blocks. Returns whether it
    /// does.
    ///
    /// # Errors
    ///
    /// Blocks that differ from what this program wrote, where differences are fatal.
    pub(crate) fn search_units(&mut self) -> Result<bool, ProgramError> {
        let Some(survey) = self.survey() else {
            return Ok(false);
        };
        if survey.matched > survey.differing {
            self.note_differing()?;
            return Ok(false);
        }
        survey.next = Some((0, 0));
        (self.verified.blocks, self.verified.bytes) = (0, 0);
        Ok(true)
    }

    /// Takes the next place of a search.
    pub(super) fn next_surveyed(&mut self) -> Option<Unread> {
        let survey = self.survey()?;
        let place = survey.take()?;
        let record = BlockRecord {
            bytes: survey.unit_bytes,
            seed: 0,
            number: 0,
            time_ns: None,
            state: WriteState::Complete,
            is_trimmed: false,
        };
        Some(Unread { place, record })
    }

    /// Compares a block that was read in a search, and counts it.
    pub(super) fn judge_surveyed(
        &mut self,
        block: Block,
        bytes: &mut [u8],
        path: impl Fn(usize) -> String,
    ) -> Result<(), ProgramError> {
        let is_of_units = self.is_reading_units();
        if is_of_units && !self.is_written(bytes) {
            return Ok(());
        }
        self.verified.blocks += 1;
        self.verified.bytes += u64::from(block.bytes);
        let checked = match is_of_units {
            true => self.check_unit(block, bytes),
            false => self.check_recorded(block, bytes),
        };
        let Err(mismatch) = checked else {
            return Ok(());
        };
        let place = path(block.place.file);
        if is_of_units {
            let dumped = self.dump(block, bytes);
            return self.note(format!("{place}: {mismatch}{dumped}"));
        }
        let survey = self.survey().expect("it searches");
        survey.differing += 1;
        if survey.differences.len() < NAMED_MAX {
            let text = format!("{place}: {mismatch}");
            survey.differences.push((block, bytes.to_vec(), text));
        }
        Ok(())
    }

    /// Whether something was written to a place: a header, or, of data without one, a byte.
    fn is_written(&self, bytes: &[u8]) -> bool {
        match self.plan.layout.header(bytes) {
            Some(decoded) => decoded.magic == MAGIC,
            None => bytes.iter().any(|byte| *byte != 0),
        }
    }

    fn check_recorded(&mut self, block: Block, bytes: &mut [u8]) -> Result<(), Mismatch> {
        let seed = match block.purpose {
            Purpose::Compare(record) => Some(record.seed),
            Purpose::Check | Purpose::Write(_) => None,
        };
        let expected = Expectation {
            offset_bytes: block.place.offset_bytes,
            seed,
            ..Expectation::default()
        };
        self.plan.layout.check(bytes, expected)?;
        let survey = self.survey().expect("it searches");
        survey.matched += 1;
        Ok(())
    }

    fn check_unit(&mut self, block: Block, bytes: &mut [u8]) -> Result<(), Mismatch> {
        let layout = &self.plan.layout;
        let other = self.other_run.as_mut().expect("it searches");
        other.found += 1;
        let is_one_write = other.survey.as_ref().is_some_and(|one| one.is_one_write);
        let seed = layout.header(bytes).map(|decoded| decoded.header.seed);
        let seed = seed.filter(|seed| is_one_write && other.seeds.contains(seed));
        let expected = Expectation {
            offset_bytes: block.place.offset_bytes,
            seed,
            ..Expectation::default()
        };
        layout.check(bytes, expected)
    }

    /// Judges what is left when all is read, or the job ends before.
    pub(super) fn settle_survey(&mut self) -> Result<(), ProgramError> {
        let found = self.other_run.as_ref().map_or(0, |other| other.found);
        let Some(survey) = self.survey() else {
            return Ok(());
        };
        let differing = survey.differing;
        match survey.next {
            // Something must have been written.
            Some(_) if found == 0 && survey.unread() == 0 => {
                self.verified.blocks = differing;
                self.note_differing()
            }
            Some(_) => {
                self.verified.unread_blocks += survey.unread();
                Ok(())
            }
            None if survey.matched > differing => self.note_differing(),
            // The job ended before it is known who wrote the blocks.
            None => {
                self.verified.unread_blocks += self.verified.blocks;
                (self.verified.blocks, self.verified.bytes) = (0, 0);
                Ok(())
            }
        }
    }

    /// Notes the blocks that are not as this program would have written them.
    fn note_differing(&mut self) -> Result<(), ProgramError> {
        let Some(survey) = self.survey() else {
            return Ok(());
        };
        let differences = std::mem::take(&mut survey.differences);
        let unnamed = std::mem::take(&mut survey.differing) - differences.len() as u64;
        for (block, bytes, text) in differences {
            let dumped = self.dump(block, &bytes);
            self.note(text + &dumped)?;
        }
        self.verified.mismatches += unnamed;
        Ok(())
    }
}

//! Loads on cloud volumes in virtual time: nothing but token buckets decides, so a week is
//! calculated without simulating its requests.

mod job;
mod limits;
mod load;
mod response;
mod search;
mod trace;
mod types;
mod week;

pub use job::read_job_file;
pub use limits::list_volume_limits;
pub use load::{LoadedRequest, VolumeLoad};
pub use search::{VolumeSearch, report_volumes};
pub use trace::TraceLoadBuilder;
pub use types::{VolumeType, list_volume_types};

#[cfg(test)]
mod tests;

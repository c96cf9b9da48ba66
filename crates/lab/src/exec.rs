//! `rota lab exec`: a program inside a station.

use crate::build::forget_control_path;
use crate::registry::{About, Answer, AskError, Connection, Place, Request, StationAbout};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::signalfd::SignalFd;
use nix::unistd::Pid;
use rota_driver::netns::{Door, clear_out};
use rota_driver::signals;
use rota_driver::sys::enter_on_exec;
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

/// Runs `program` in station `station` of the lab at `place`; returns its exit code, as a shell would.
///
/// # Errors
/// No such lab, station or program, or the lab ended before the program.
pub fn exec(place: &Place, station: &str, program: &OsStr, arguments: &[OsString]) -> Result<u8, AskError> {
    let keeper = place.connect()?;
    let about = keeper.about()?;
    let number = station_number(station, &about)?;
    let (Answer::Door { warning, environment }, fds) = keeper.ask(&Request::Join { station: number })? else {
        return Err(AskError::Failed("the lab's keeper is of another version of rota".to_owned()));
    };
    warning.iter().for_each(|warning| eprintln!("rota: {warning}"));
    // Inside the lab `rota` is this program, wherever it lies and however it was called.
    let own = std::env::current_exe().ok().filter(|_| program == "rota");
    let mut command = Command::new(own.as_deref().map_or(program, Path::as_os_str));
    command.args(arguments).envs(environment);
    forget_control_path(&mut command);
    let door = Arc::new(Door::new(fds));
    enter_on_exec(&mut command, Arc::clone(&door));
    let signals =
        signals::catch(&signals::SUPERVISED).map_err(|e| format!("could not wait for signals: {e}"))?;
    let mut child = command
        .spawn()
        .map_err(|error| format!("could not run '{}' in {station}: {error}", program.to_string_lossy()))?;
    let status = supervise(&mut child, &keeper, &signals)
        .map_err(|error| format!("lost sight of the program: {error}"))?;
    status.map(shell_code).ok_or_else(|| {
        // The programs that the program had started in turn would hold the station's namespaces.
        clear_out(|| door.processes(), Duration::ZERO);
        AskError::Failed(format!("the lab '{}' ended, and what ran in {station} with it", about.name))
    })
}

/// The number of a station.
fn station_number(station: &str, about: &About) -> Result<u8, AskError> {
    let found = about.stations.iter().zip(1..).find(|(known, _)| known.name == station);
    found.map(|(_, number)| number).ok_or_else(|| {
        let all = list(&about.stations);
        AskError::NotThere(format!("'{station}' is no station of the lab '{}': it has {all}", about.name))
    })
}

/// The stations in words.
pub fn list(stations: &[StationAbout]) -> String {
    match stations {
        [first, .., last] if stations.len() > 8 => format!("{} to {}", first.name, last.name),
        _ => stations.iter().map(|station| station.name.as_str()).collect::<Vec<_>>().join(", "),
    }
}

/// Waits for the child's end; passes signals on; kills it and returns `None` when the lab ends first.
fn supervise(
    child: &mut Child,
    keeper: &Connection,
    signals: &SignalFd,
) -> std::io::Result<Option<ExitStatus>> {
    let pid = Pid::from_raw(child.id().cast_signed());
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let mut waiting =
            [PollFd::new(signals.as_fd(), PollFlags::POLLIN), PollFd::new(keeper.as_fd(), PollFlags::POLLIN)];
        match poll(&mut waiting, PollTimeout::NONE) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        // The keeper says nothing after its answer: anything here is the end of the lab.
        if waiting[1].any().unwrap_or(false) {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        while let Ok(Some(info)) = signals.read_signal() {
            let signal = Signal::try_from(info.ssi_signo.cast_signed()).unwrap_or(Signal::SIGCHLD);
            // What the terminal sends reaches the child without us.
            // Not so a hang-up: it reaches the leader of the session only.
            let from_terminal = info.ssi_code == libc::SI_KERNEL && signal != Signal::SIGHUP;
            if signal != Signal::SIGCHLD && !from_terminal {
                let _ = kill(pid, signal);
            }
        }
    }
}

fn shell_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_names_of_stations_are_stations() {
        let lab = crate::LabSpec::new("lab", 3, rota_units::BitRate::from_mbit(10));
        let about = About::of(&lab, false, "root".into());
        assert_eq!(station_number("n3", &about).unwrap(), 3);
        for bad in ["n0", "n4", "n03", "3", "n", "", "n-1", "n256", "N1"] {
            let error = station_number(bad, &about).unwrap_err();
            assert!(
                matches!(&error, AskError::NotThere(said) if said.ends_with("it has n1, n2, n3")),
                "{error}"
            );
        }
    }
}

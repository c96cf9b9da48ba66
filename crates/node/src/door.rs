//! The control socket of the node: its place, and the users that it serves.

use crate::NodeSpec;
use crate::log::{Level, say};
use nix::unistd::{Gid, Group};
use rota_shm::control::{Connection, ControlListener, ControlName, SocketError};

/// A group whose members this node serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guests {
    /// Its name, as it was given.
    pub name: String,
    /// Its number.
    pub gid: u32,
}

impl Guests {
    /// The group of that name or number.
    ///
    /// # Errors
    /// One sentence: there is none, or none in this user namespace.
    pub fn find(name: &str) -> Result<Self, String> {
        let number = || name.parse().ok().map(Gid::from_raw);
        let known = match Group::from_name(name) {
            Ok(Some(group)) => Some(group.gid),
            _ => number(),
        };
        let Some(gid) = known else {
            return Err(format!(
                "there is no group '{name}' on this host; 'getent group' lists those there are"
            ));
        };
        let gid = gid.as_raw();
        if !rota_rundir::gid_is_mapped(gid) {
            return Err(format!(
                "group '{name}' (number {gid}) does not exist in this user namespace, which has {}; name one \
                 of those, or start the node outside",
                rota_rundir::group_map()
            ));
        }
        Ok(Self { name: name.to_owned(), gid })
    }
}

/// Listens at the place that `spec` names. The second node of a network namespace, which serves another
/// interface, gets a name of its own if the operator has not chosen one.
pub(crate) fn open(spec: &NodeSpec) -> Result<ControlListener, SocketError> {
    let group = spec.guests.as_ref().map(|guests| guests.gid);
    let listener = match ControlListener::bind_for(&spec.control, group) {
        Err(SocketError::InUse(_)) if spec.control.is_default() => {
            ControlListener::bind_for(&ControlName::of_interface(&spec.interface), group)
        }
        other => other,
    }?;
    if spec.confine {
        sweep();
    }
    Ok(listener)
}

/// Removes what nodes that were killed left of namespaces that are gone.
fn sweep() {
    let gone = rota_rundir::sweep();
    if gone > 0 {
        let text = format!("{gone} run directories of dead nodes of other network namespaces removed");
        say(Level::Info, "swept", &text);
    }
}

/// Lets root in, the node's own user, and the members of its group. The user, if it may come in.
pub(crate) fn check(connection: &Connection, own: u32, guests: Option<&Guests>) -> Result<u32, String> {
    let unknown = "the kernel does not say who connects";
    let peer = connection.peer().map_err(|_| unknown)?;
    let is_guest = |guests: &Guests| {
        let groups = connection.peer_groups().unwrap_or_default();
        peer.gid() == guests.gid || groups.contains(&guests.gid)
    };
    // All users without a number in this user namespace bear one.
    let is_own = peer.uid() == own && rota_rundir::uid_is_mapped(own);
    if peer.uid() == 0 || is_own || guests.is_some_and(is_guest) {
        return Ok(peer.uid());
    }
    Err(match guests {
        None => {
            "this node serves only root and the user it runs as; use sudo, run as that user, or start it \
                 with 'rota node --group NAME' for a group of yours"
                .into()
        }
        Some(guests) => format!(
            "this node serves only root, the user it runs as, and the members of group '{}'; use sudo, or be \
             made a member",
            guests.name
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_found_by_name_and_by_number() {
        let own = nix::unistd::getegid().as_raw();
        assert_eq!(Guests::find(&own.to_string()).unwrap().gid, own);
        let unknown = Guests::find("no-such-group").unwrap_err();
        assert!(
            unknown.contains("no group 'no-such-group'") && unknown.contains("getent group"),
            "{unknown}"
        );
    }

    #[test]
    fn a_group_of_another_user_namespace_is_refused_with_those_that_exist() {
        // No user or group has the number -1.
        let unmapped = Guests::find(&u32::MAX.to_string()).unwrap_err();
        assert!(unmapped.contains("does not exist in this user namespace, which has"), "{unmapped}");
    }
}

// SPDX-License-Identifier: LGPL-2.1-or-later

//! What an id of a name stands for.

use std::collections::HashMap;
use std::fmt;

/// A name and its value.
pub type Named = (Vec<u8>, Vec<u8>);

/// Gets id, name and value, and returns whether there shall be more.
pub type Visit<'a> = &'a mut dyn FnMut(u64, &[u8], &[u8]) -> bool;

/// Tells what an id of [`id_of`](crate::id_of) stands for: the name, and a value of the
/// program's. The program puts a name before it arms the timer. When the timer is due it
/// acts, removes the name, and acknowledges. At its start it compares all names with a
/// scan. A store of the program's own, as in a database, implements this.
pub trait Names {
    /// Why a store fails.
    type Error: From<Collision>;

    /// Keeps or replaces the value of a name. Another name with this id is a
    /// [`Collision`], and the other one stays.
    fn put(&mut self, id: u64, name: &[u8], value: &[u8]) -> Result<(), Self::Error>;

    /// Returns name and value.
    fn get(&mut self, id: u64) -> Result<Option<Named>, Self::Error>;

    /// Forgets an id. Returns whether it was kept.
    fn remove(&mut self, id: u64) -> Result<bool, Self::Error>;

    /// Calls `f` for every id, in no order, until it returns false.
    fn each(&mut self, f: Visit<'_>) -> Result<(), Self::Error>;
}

/// Two names with the same id. The program uses another name or another key: no expiration
/// is given to the wrong one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collision {
    /// The id of both.
    pub id: u64,
    /// The name that stays.
    pub kept: Vec<u8>,
}

impl fmt::Display for Collision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = String::from_utf8_lossy(&self.kept);
        write!(f, "another name has the id {}: {:?}", self.id, kept)
    }
}

impl std::error::Error for Collision {}

/// Names that end with the program.
#[derive(Clone, Debug, Default)]
pub struct MemoryNames {
    ids: HashMap<u64, Named>,
}

impl Names for MemoryNames {
    type Error = Collision;

    fn put(&mut self, id: u64, name: &[u8], value: &[u8]) -> Result<(), Collision> {
        match self.ids.get_mut(&id) {
            Some((kept, _)) if kept != name => Err(Collision { id, kept: kept.clone() }),
            Some((_, old)) => {
                *old = value.to_vec();
                Ok(())
            }
            None => {
                self.ids.insert(id, (name.to_vec(), value.to_vec()));
                Ok(())
            }
        }
    }

    fn get(&mut self, id: u64) -> Result<Option<Named>, Collision> {
        Ok(self.ids.get(&id).cloned())
    }

    fn remove(&mut self, id: u64) -> Result<bool, Collision> {
        Ok(self.ids.remove(&id).is_some())
    }

    fn each(&mut self, f: Visit<'_>) -> Result<(), Collision> {
        let _ = self.ids.iter().all(|(id, (name, value))| f(*id, name, value));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collision_is_seen() {
        let mut names = MemoryNames::default();
        names.put(1, b"a", b"x").unwrap();
        names.put(1, b"a", b"y").unwrap();
        let collision = names.put(1, b"b", b"z").unwrap_err();
        assert_eq!(collision.kept, b"a");
        assert_eq!(names.get(1).unwrap().unwrap(), (b"a".to_vec(), b"y".to_vec()));
        let mut seen = 0;
        names.each(&mut |_, _, _| { seen += 1; true }).unwrap();
        assert_eq!(seen, 1);
        assert!(names.remove(1).unwrap() && !names.remove(1).unwrap());
    }
}

//! Variables while a template runs.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use crate::ast::{Block, Blocks, Name};
use crate::item::Item;

/// The variables of one list of statements, and those around it. Content that
/// is handed to a block keeps the scope it was written in.
pub(super) struct Scope {
    variables: RefCell<Vec<(Name, Item)>>,
    /// The blocks of the template that begins here.
    blocks: Option<Arc<Blocks>>,
    parent: Option<Rc<Self>>,
}

impl Scope {
    pub(super) fn top(variables: Vec<(Name, Item)>, blocks: Arc<Blocks>) -> Rc<Self> {
        let variables = RefCell::new(variables);
        Rc::new(Self { variables, blocks: Some(blocks), parent: None })
    }

    pub(super) fn inside(parent: &Rc<Self>) -> Rc<Self> {
        let parent = Some(Rc::clone(parent));
        Rc::new(Self { variables: RefCell::default(), blocks: None, parent })
    }

    pub(super) fn with_blocks(parent: &Rc<Self>, blocks: Arc<Blocks>) -> Rc<Self> {
        let parent = Some(Rc::clone(parent));
        Rc::new(Self { variables: RefCell::default(), blocks: Some(blocks), parent })
    }

    fn outwards(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |scope| scope.parent.as_deref())
    }

    pub(super) fn get(&self, name: &str) -> Option<Item> {
        self.outwards().find_map(|scope| scope.own(name))
    }

    /// A variable of this scope alone.
    pub(super) fn own(&self, name: &str) -> Option<Item> {
        let variables = self.variables.borrow();
        variables.iter().find(|(known, _)| **known == *name).map(|(_, item)| item.clone())
    }

    /// Creates or replaces a variable of this scope.
    pub(super) fn declare(&self, name: &Name, item: Item) {
        if let Err(item) = self.replace(name, item) {
            self.variables.borrow_mut().push((Arc::clone(name), item));
        }
    }

    /// Changes the nearest variable of this name; false if there is none.
    pub(super) fn set(&self, name: &str, item: Item) -> bool {
        let mut item = item;
        for scope in self.outwards() {
            match scope.replace(name, item) {
                Ok(()) => return true,
                Err(same) => item = same,
            }
        }
        false
    }

    fn replace(&self, name: &str, item: Item) -> Result<(), Item> {
        match self.variables.borrow_mut().iter_mut().find(|(known, _)| **known == *name) {
            Some((_, known)) => {
                *known = item;
                Ok(())
            }
            None => Err(item),
        }
    }

    pub(super) fn block(&self, name: &str) -> Option<Arc<Block>> {
        self.outwards().find_map(|scope| scope.blocks.as_ref()?.get(name).cloned())
    }

    /// The variables of each scope, innermost first.
    pub(super) fn levels(&self) -> impl Iterator<Item = Vec<(Name, Item)>> {
        self.outwards().map(|scope| scope.variables.borrow().clone())
    }
}

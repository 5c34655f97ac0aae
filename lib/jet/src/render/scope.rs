//! Variables while a template runs.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::ast::{Block, Blocks, Name};
use crate::item::Item;

/// The variables of one list of statements, and those around it. Content that
/// is handed to a block keeps the scope it was written in.
pub(super) struct Scope {
    variables: RefCell<BTreeMap<Name, Item>>,
    /// The blocks of the template that begins here.
    blocks: Option<Arc<Blocks>>,
    parent: Option<Rc<Self>>,
}

impl Scope {
    pub(super) fn top(variables: BTreeMap<Name, Item>, blocks: Arc<Blocks>) -> Rc<Self> {
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

    /// A variable of this scope or one around it, and how many scopes it took.
    pub(super) fn find(&self, name: &str) -> (Option<Item>, usize) {
        let mut walked = 0;
        let found = self.outwards().inspect(|_| walked += 1).find_map(|scope| scope.own(name));
        (found, walked)
    }

    /// A variable of this scope alone.
    pub(super) fn own(&self, name: &str) -> Option<Item> {
        self.variables.borrow().get(name).cloned()
    }

    /// Creates or replaces a variable of this scope.
    pub(super) fn declare(&self, name: &Name, item: Item) {
        self.variables.borrow_mut().insert(Arc::clone(name), item);
    }

    /// Changes the nearest variable of this name; false if there is none.
    pub(super) fn set(&self, name: &str, item: Item) -> bool {
        for scope in self.outwards() {
            if let Some(known) = scope.variables.borrow_mut().get_mut(name) {
                *known = item;
                return true;
            }
        }
        false
    }

    pub(super) fn block(&self, name: &str) -> Option<Arc<Block>> {
        self.outwards().find_map(|scope| scope.blocks.as_ref()?.get(name).cloned())
    }

    /// The variables of each scope, innermost first.
    pub(super) fn levels(&self) -> impl Iterator<Item = BTreeMap<Name, Item>> {
        self.outwards().map(|scope| scope.variables.borrow().clone())
    }
}

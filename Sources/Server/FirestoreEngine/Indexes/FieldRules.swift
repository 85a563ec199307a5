// Which of a collection group's fields have automatic entries: a tree over field paths.
//
// Invariant: a field without a node of its own is treated as the nearest field around it that has one.

import FirestoreModel

/// What is indexed of a field and of the fields inside it.
struct FieldRules: Sendable, Equatable {
  /// Whether its value has an entry.
  var value = true
  /// Whether the elements of an array have entries.
  var elements = true
  /// The fields inside that differ, by the bytes of their names.
  private var children: [[UInt8]: FieldRules] = [:]

  /// Everything is indexed.
  static let automatic = FieldRules()

  private init(value: Bool = true, elements: Bool = true) {
    self.value = value
    self.elements = elements
  }

  /// The rules that overrides make.
  init(_ overrides: [IndexState.Override]) {
    for override in overrides.sorted(by: { $0.field.count < $1.field.count }) {
      set(override.field[...], value: override.value, elements: override.elements)
    }
  }

  private mutating func set(_ path: ArraySlice<String>, value: Bool, elements: Bool) {
    guard let name = path.first else {
      self.value = value
      self.elements = elements
      return
    }
    var child = children[Array(name.utf8)] ?? FieldRules(value: self.value, elements: self.elements)
    child.set(path.dropFirst(), value: value, elements: elements)
    children[Array(name.utf8)] = child
  }

  /// The rules of a field inside.
  func child(_ name: String) -> FieldRules {
    if children.isEmpty { return self }
    return children[Array(name.utf8)] ?? FieldRules(value: value, elements: elements)
  }

  /// The rules of a field.
  subscript(path: FieldPath) -> FieldRules { path.segments.reduce(self) { $0.child($1) } }

  /// What holds by either rules.
  func union(_ other: FieldRules) -> FieldRules { merged(other) { $0 || $1 } }

  /// What holds by both rules.
  func intersection(_ other: FieldRules) -> FieldRules { merged(other) { $0 && $1 } }

  private func merged(_ other: FieldRules, _ combine: (Bool, Bool) -> Bool) -> FieldRules {
    var rules = FieldRules(
      value: combine(value, other.value), elements: combine(elements, other.elements))
    for name in Set(children.keys).union(other.children.keys) {
      let mine = children[name] ?? FieldRules(value: value, elements: elements)
      let others = other.children[name] ?? FieldRules(value: other.value, elements: other.elements)
      rules.children[name] = mine.merged(others, combine)
    }
    return rules
  }
}

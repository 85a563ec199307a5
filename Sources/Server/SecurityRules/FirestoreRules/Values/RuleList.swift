// A list of the rules language. A stored array is not copied.

package import FirestoreModel

/// A list in rules: a stored array, the keys of a stored map, or items that an expression made.
package enum RuleList: Sendable {
  /// A stored array.
  case stored([Value])
  /// The keys of a stored map. They are in the order of rules, because no key has a character beyond U+FFFF.
  case keys(MapValue)
  /// Items of an expression.
  case built([RuleValue])

  /// The number of items.
  var count: Int {
    switch self {
    case .stored(let values): values.count
    case .keys(let fields): fields.count
    case .built(let values): values.count
    }
  }

  /// An item; the index must lie within the list.
  subscript(index: Int) -> RuleValue {
    switch self {
    case .stored(let values): RuleValue(values[index])
    case .keys(let fields): .text(fields.entries[index].key)
    case .built(let values): values[index]
    }
  }

  /// All items.
  var items: [RuleValue] {
    switch self {
    case .stored(let values): values.map(RuleValue.init)
    case .keys(let fields): fields.entries.map { .text($0.key) }
    case .built(let values): values
    }
  }

  /// A range of items.
  func slice(_ range: Range<Int>) -> RuleList {
    switch self {
    case .stored(let values): .stored(Array(values[range]))
    case .keys(let fields): .built(fields.entries[range].map { .text($0.key) })
    case .built(let values): .built(Array(values[range]))
    }
  }
}

/// Short lists of text, which rules compare most often, are searched without an index.
extension RuleList {
  /// The longest list that is searched item by item. The budget charges three units per byte for an indexed search.
  /// Comparing a byte with this number of items costs less.
  private static let maximumScannedItems = 16

  /// Whether all items are text, and ``contains(text:)`` is fast.
  var hasFastTextSearch: Bool {
    switch self {
    case .keys: true
    case .stored(let values):
      values.count <= Self.maximumScannedItems
        && values.allSatisfy { if case .string = $0 { true } else { false } }
    case .built(let values):
      values.count <= Self.maximumScannedItems
        && values.allSatisfy { if case .string = $0 { true } else { false } }
    }
  }

  /// Whether all items fulfil a condition. They must be text.
  func allTexts(_ condition: (RuleText) -> Bool) -> Bool {
    switch self {
    case .keys(let fields):
      for entry in fields.entries where !condition(RuleText(entry.key)) { return false }
    case .stored(let values):
      for case .string(let text) in values where !condition(RuleText(text)) { return false }
    case .built(let values):
      for case .string(let text) in values where !condition(text) { return false }
    }
    return true
  }

  /// Whether an item equals a text. All items must be text.
  func contains(text: RuleText) -> Bool {
    if case .keys(let fields) = self { return text.isValid && fields.hasKey(text.string) }
    return !allTexts { $0 != text }
  }
}

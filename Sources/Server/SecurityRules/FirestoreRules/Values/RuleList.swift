package import FirestoreModel

/// A list in rules: a stored array, or items that an expression made.
package enum RuleList: Sendable {
  /// A stored array.
  case stored([Value])
  /// Items of an expression.
  case built([RuleValue])

  /// The number of items.
  var count: Int {
    switch self {
    case .stored(let values): values.count
    case .built(let values): values.count
    }
  }

  /// An item; the index must lie within the list.
  subscript(index: Int) -> RuleValue {
    switch self {
    case .stored(let values): RuleValue(values[index])
    case .built(let values): values[index]
    }
  }

  /// All items.
  var items: [RuleValue] {
    switch self {
    case .stored(let values): values.map(RuleValue.init)
    case .built(let values): values
    }
  }

  /// A range of items.
  func slice(_ range: Range<Int>) -> RuleList {
    switch self {
    case .stored(let values): .stored(Array(values[range]))
    case .built(let values): .built(Array(values[range]))
    }
  }
}

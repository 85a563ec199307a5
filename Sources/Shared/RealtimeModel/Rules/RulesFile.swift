// A Realtime Database's rules file: JSON with comments, whose structure mirrors the tree. The text is stored unchanged.
//
// Reading checks the JSON and its comments, the position and type of every member, keys, wildcards and index paths. It
// passes each expression to a checker that the caller supplies.

/// The rules of a location, or of all locations that a wildcard matches.
public final class RuleNode: Sendable {
  /// A rule.
  public enum Rule: Sendable, Hashable {
    /// The JSON boolean `true` or `false`.
    case constant(Bool)
    /// An expression, unchecked.
    case expression(String)
  }

  /// The `.read` rule.
  public let read: Rule?
  /// The `.write` rule.
  public let write: Rule?
  /// The `.validate` rule.
  public let validate: Rule?
  /// The indexes of the location's children: by value and by child paths, without repeats.
  public let indexes: [Ordering]
  /// The rules of named children.
  public let children: [ChildKey: RuleNode]
  /// The rules of all other children, and the wildcard's name with its `$`.
  public let wildcard: (name: String, node: RuleNode)?
  /// Whether this node or one below it has an index.
  public let hasIndexes: Bool

  init(
    read: Rule?, write: Rule?, validate: Rule?, indexes: [Ordering], children: [ChildKey: RuleNode],
    wildcard: (name: String, node: RuleNode)?
  ) {
    self.read = read
    self.write = write
    self.validate = validate
    self.indexes = indexes
    self.children = children
    self.wildcard = wildcard
    hasIndexes =
      !indexes.isEmpty || children.values.contains { $0.hasIndexes } || wildcard?.node.hasIndexes ?? false
  }

  /// The rules of a child. A wildcard does not apply to named children.
  public func child(_ key: ChildKey) -> RuleNode? { children[key] ?? wildcard?.node }

  /// The rules of a descendant.
  public func descendant(_ path: Path) -> RuleNode? {
    var node: RuleNode? = self
    for key in path.keys { node = node?.child(key) }
    return node
  }

  /// Whether this node and another have the same indexes, at their locations and at every location below.
  public func hasSameIndexes(as other: RuleNode?) -> Bool {
    var shapes = IndexShapes()
    return shapes.number(of: self) == shapes.number(of: other)
  }
}

/// Assigns the same number to nodes whose indexes are equal, including the indexes below them. Comparing two trees of
/// rules then visits each node once.
private struct IndexShapes {
  /// The indexes at and below a node. Nodes with the same indexes have equal shapes, even if one declares them by a
  /// wildcard and the other by named children.
  private struct Shape: Hashable {
    let indexes: Set<Ordering>
    /// The number of the wildcard's shape.
    let wildcard: Int
    /// The named children whose shape differs from the wildcard's.
    let others: [ChildKey: Int]
  }

  private var numbers: [Shape: Int] = [:]

  /// The number of a node's shape; 0 for a node without indexes.
  mutating func number(of node: RuleNode?) -> Int {
    guard let node, node.hasIndexes else { return 0 }
    let wildcard = number(of: node.wildcard?.node)
    var others: [ChildKey: Int] = [:]
    for (key, child) in node.children {
      let childNumber = number(of: child)
      if childNumber != wildcard { others[key] = childNumber }
    }
    let shape = Shape(indexes: Set(node.indexes), wildcard: wildcard, others: others)
    if let assigned = numbers[shape] { return assigned }
    numbers[shape] = numbers.count + 1
    return numbers.count
  }
}

/// A rules file.
public struct RulesFile: Sendable {
  /// The maximum size of a file, in bytes.
  public static let maximumBytes = 1 << 20
  /// The maximum nesting depth of objects and arrays.
  public static let maximumLevels = 128
  /// The maximum number of reported problems.
  public static let maximumProblems = 100

  /// The byte-order mark that some editors write.
  private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

  /// The original text, without a byte-order mark.
  public let text: String
  /// The text as plain JSON on one line, without comments and trailing commas.
  public let strictText: String
  /// The rules of the database's root.
  public let root: RuleNode

  /// Reads a rules file.
  ///
  /// - Parameter check: checks the expressions; it receives every rule in the order of the text.
  /// - Throws: ``RulesError`` with all problems up to the first malformed JSON.
  public init(_ bytes: [UInt8], check: RuleCheck? = nil) throws(RulesError) {
    guard bytes.count <= RulesFile.maximumBytes else {
      throw RulesError([
        RulesProblem(line: 1, column: 1, message: "Rules may have at most \(RulesFile.maximumBytes) bytes.")
      ])
    }
    let bytes =
      bytes.starts(with: RulesFile.byteOrderMark)
      ? Array(bytes.dropFirst(RulesFile.byteOrderMark.count)) : bytes
    let text = String(decoding: bytes, as: UTF8.self)
    guard text.utf8.elementsEqual(bytes) else {
      throw RulesError([RulesProblem(line: 1, column: 1, message: "Parse error: the text is not UTF-8.")])
    }
    var reader = RulesReader(bytes, check: check)
    (root, strictText) = try reader.read()
    self.text = text
  }

  /// Whether an order of a location's children is indexed. Orders by key and by priority always are.
  public func hasIndex(on ordering: Ordering, at path: Path) -> Bool {
    switch ordering {
    case .key, .priority: true
    case .value, .child: root.descendant(path)?.indexes.contains(ordering) ?? false
    }
  }
}

// A Realtime Database's rules file: JSON with comments, whose structure mirrors the tree. It is kept as it was written.
//
// What reading checks: the JSON and its comments, the places and types of everything, keys, wildcards, index paths, and
// the form of each expression (see RuleExpressionForm). It does not check what expressions mean: names, types and
// arguments are as yet unknown.

/// What a rules file says about a location: at that place in the tree, or wherever a wildcard matches.
public final class RuleNode: Sendable {
  /// A rule as it is written.
  public enum Rule: Sendable, Hashable {
    /// `true` or `false`, as a boolean of JSON.
    case constant(Bool)
    /// An expression, whose form was checked.
    case expression(String)
  }

  /// Who may read.
  public let read: Rule?
  /// Who may write.
  public let write: Rule?
  /// What may be written.
  public let validate: Rule?
  /// By what the children of the location are indexed: values and child paths, each once.
  public let indexes: [Ordering]
  /// What is said about children by name.
  public let children: [ChildKey: RuleNode]
  /// What is said about all other children, and the wildcard's name with its `$`.
  public let wildcard: (name: String, node: RuleNode)?
  /// Whether anything is indexed here or below.
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

  /// What is said about a child. A wildcard says nothing about a key that stands beside it.
  public func child(_ key: ChildKey) -> RuleNode? { children[key] ?? wildcard?.node }

  /// What is said about a descendant.
  public func descendant(_ path: Path) -> RuleNode? {
    var node: RuleNode? = self
    for key in path.keys { node = node?.child(key) }
    return node
  }

  /// Whether the same is indexed here and below as by other rules.
  public func hasSameIndexes(as other: RuleNode?) -> Bool {
    var shapes = IndexShapes()
    return shapes.number(of: self) == shapes.number(of: other)
  }

  /// Whether any rule stands here or below.
  fileprivate var hasValidation: Bool {
    validate != nil || children.values.contains { $0.hasValidation } || wildcard?.node.hasValidation ?? false
  }
}

/// What is indexed at and below places of rules: each such shape gets a number, so that every place is looked at once.
private struct IndexShapes {
  /// Places have the same if they index the same, whatever the rules say it with.
  private struct Shape: Hashable {
    let indexes: Set<Ordering>
    /// What most children have.
    let wildcard: Int
    /// The children that have something else.
    let others: [ChildKey: Int]
  }

  private var numbers: [Shape: Int] = [:]

  /// The number of a place; 0 where nothing is indexed.
  mutating func number(of node: RuleNode?) -> Int {
    guard let node, node.hasIndexes else { return 0 }
    let wildcard = number(of: node.wildcard?.node)
    var others: [ChildKey: Int] = [:]
    for (key, child) in node.children {
      let own = number(of: child)
      if own != wildcard { others[key] = own }
    }
    let shape = Shape(indexes: Set(node.indexes), wildcard: wildcard, others: others)
    if let known = numbers[shape] { return known }
    numbers[shape] = numbers.count + 1
    return numbers.count
  }
}

/// A rules file.
public struct RulesFile: Sendable {
  /// The largest file, in bytes.
  public static let mostBytes = 1 << 20
  /// The most levels of objects and arrays.
  public static let mostLevels = 128
  /// The most problems that are reported.
  public static let mostProblems = 100

  /// What some editors begin a file with.
  private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

  /// The text as it was written, without a byte-order mark.
  public let text: String
  /// The same as plain JSON on one line: without comments and trailing commas.
  public let strictText: String
  /// What is said about the root of the database.
  public let root: RuleNode

  /// Reads a rules file.
  ///
  /// - Throws: ``RulesError`` with everything that is wrong, up to the first place that is no JSON.
  public init(_ bytes: [UInt8]) throws(RulesError) {
    guard bytes.count <= RulesFile.mostBytes else {
      throw RulesError([
        RulesProblem(line: 1, column: 1, message: "Rules may have at most \(RulesFile.mostBytes) bytes.")
      ])
    }
    let bytes =
      bytes.starts(with: RulesFile.byteOrderMark)
      ? Array(bytes.dropFirst(RulesFile.byteOrderMark.count)) : bytes
    let text = String(decoding: bytes, as: UTF8.self)
    guard text.utf8.elementsEqual(bytes) else {
      throw RulesError([RulesProblem(line: 1, column: 1, message: "Parse error: the text is not UTF-8.")])
    }
    var reader = RulesReader(bytes)
    (root, strictText) = try reader.read()
    self.text = text
  }

  /// Whether an order of a location's children is indexed. Keys and priorities always are.
  public func hasIndex(on ordering: Ordering, at path: Path) -> Bool {
    switch ordering {
    case .key, .priority: true
    case .value, .child: root.descendant(path)?.indexes.contains(ordering) ?? false
    }
  }

  /// Whether everybody may read and write everything, so that enforcing the rules changes nothing.
  public var isOpen: Bool {
    root.read == .constant(true) && root.write == .constant(true) && !root.hasValidation
  }
}

// Matches complete document paths with the concatenated pattern of a block.
//
// A pattern has at most one `**`, so its length is determined and matching never backtracks.

import FirestoreModel

/// The concatenated pattern of a match block, from `/databases` on.
struct MatchPattern: Sendable {
  /// The segments.
  let segments: [SyntaxTree.PatternSegment.Kind]
  /// The index of the `**` wildcard.
  let rest: Int?
  /// The number of segments that the `**` wildcard takes at least.
  let minimumRest: Int
  /// The place of the block, which tells blocks with equal patterns apart.
  let block: SourcePosition?

  init(
    _ segments: [SyntaxTree.PatternSegment.Kind], version: SyntaxTree.Version, block: SourcePosition? = nil
  ) {
    self.segments = segments
    self.block = block
    rest = segments.firstIndex { if case .rest = $0 { true } else { false } }
    minimumRest = version == .one ? 1 : 0
  }

  /// The number of wildcards.
  var wildcardCount: Int {
    segments.reduce(0) { if case .literal = $1 { $0 } else { $0 + 1 } }
  }

  /// Binds the wildcards to a document's path.
  ///
  /// - Parameters:
  ///   - database: The database's id.
  ///   - path: The document's path.
  ///   - wildcards: Receives the values by slot if the pattern matches.
  /// - Returns: whether the pattern matches.
  func match(database: String, path: ResourcePath, into wildcards: inout [RuleValue]) -> Bool {
    match(database: database, path: path, isDocumentKnown: true, isParentKnown: true, into: &wildcards)
  }

  /// Binds the wildcards for a query, which names no document.
  ///
  /// - Parameters:
  ///   - collection: The collection's path. For a collection group only its last segment counts.
  ///   - isGroup: Whether collections with the id at any depth are searched, below any document.
  func matchQuery(
    database: String, collection: ResourcePath, isGroup: Bool, into wildcards: inout [RuleValue]
  ) -> Bool {
    match(
      database: database, path: collection.appending(""), isDocumentKnown: false, isParentKnown: !isGroup,
      into: &wildcards)
  }

  private func match(
    database: String, path: ResourcePath, isDocumentKnown: Bool, isParentKnown: Bool,
    into wildcards: inout [RuleValue]
  ) -> Bool {
    let count = path.count + 3
    let restCount = count - (segments.count - 1)
    if isParentKnown {
      if rest == nil ? segments.count != count : restCount < minimumRest { return false }
    }
    guard isParentKnown || isGroupPattern else { return false }

    func text(_ index: Int) -> String {
      switch index {
      case 0: "databases"
      case 1: database
      case 2: "documents"
      default: path.segments[index - 3]
      }
    }

    wildcards.removeAll(keepingCapacity: true)
    // The offset of the path's segments behind the `**` against the pattern's.
    let shift = rest == nil ? 0 : count - segments.count
    for (index, segment) in segments.enumerated() {
      let isBehindRest = rest.map { index > $0 } ?? false
      let position = isBehindRest ? index + shift : index
      let isDocument = position == count - 1
      switch segment {
      case .literal(let literal):
        if isDocument, !isDocumentKnown { return false }
        if !text(position).utf8.elementsEqual(literal.utf8) { return false }
      case .single:
        if isDocument, !isDocumentKnown {
          wildcards.append(.constraint(.unbound))
        } else {
          wildcards.append(.text(text(position)))
        }
      case .rest:
        let end = index + max(0, restCount)
        if !isParentKnown || (!isDocumentKnown && end == count) {
          wildcards.append(.unknownPath)
        } else {
          wildcards.append(
            .path(RulePath(segments: (index..<end).map { .text(RuleText(text($0))) })))
        }
      }
    }
    return true
  }

  /// Whether the pattern covers documents of a collection below every parent: the fixed start, a `**`, and at most the
  /// collection and the document behind it.
  private var isGroupPattern: Bool {
    guard let rest else { return false }
    return rest <= 3 && segments.count - rest <= 3
  }
}

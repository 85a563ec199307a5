// Matches complete document paths with the pattern of a block, concatenated with the patterns of the blocks around it.
//
// A pattern has at most one `**`, so the path determines how many segments the `**` matches, and matching never
// backtracks.

import FirestoreModel

/// The concatenated pattern of a match block, from `/databases` on.
struct MatchPattern: Sendable {
  /// The segments of the concatenated pattern.
  let segments: [SyntaxTree.PatternSegment.Kind]
  /// The literal segments with their indices. Literals after `documents` come first, because most blocks differ there.
  private let literals: [(index: Int, text: String)]
  /// The index of the `**` wildcard.
  let restIndex: Int?
  /// The minimum number of segments that the `**` wildcard matches.
  let minimumRestCount: Int
  /// The position of the block, which distinguishes blocks with equal patterns.
  let block: SourcePosition?

  init(
    _ segments: [SyntaxTree.PatternSegment.Kind], version: SyntaxTree.Version, block: SourcePosition? = nil
  ) {
    self.segments = segments
    self.block = block
    let texts = segments.enumerated().compactMap { index, segment -> (index: Int, text: String)? in
      if case .literal(let text) = segment { (index, text) } else { nil }
    }
    literals = texts.filter { $0.index > 2 } + texts.filter { $0.index <= 2 }
    restIndex = segments.firstIndex { if case .rest = $0 { true } else { false } }
    minimumRestCount = version == .one ? 1 : 0
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
    match(database: database, path: path, isDocumentKnown: true, into: &wildcards)
  }

  /// Binds the wildcards for a query over one collection, which names no document.
  func match(database: String, collection: ResourcePath, into wildcards: inout [RuleValue]) -> Bool {
    match(
      database: database, path: collection.appending(""), isDocumentKnown: false, into: &wildcards)
  }

  private func match(
    database: String, path: ResourcePath, isDocumentKnown: Bool, into wildcards: inout [RuleValue]
  ) -> Bool {
    let count = path.count + 3
    let restCount = count - (segments.count - 1)
    if restIndex == nil ? segments.count != count : restCount < minimumRestCount { return false }
    for (index, literal) in literals {
      let position = restIndex.map { index > $0 } ?? false ? index + restCount - 1 : index
      if position == count - 1, !isDocumentKnown { return false }
      guard Self.segment(position, database, path).hasSameUTF8(as: literal) else { return false }
    }
    wildcards.removeAll(keepingCapacity: true)
    for (index, segment) in segments.enumerated() {
      let position = restIndex.map { index > $0 } ?? false ? index + restCount - 1 : index
      let isUnknown = position == count - 1 && !isDocumentKnown
      switch segment {
      case .literal: break
      case .single:
        wildcards.append(
          isUnknown ? .constraint(.unbound) : .text(Self.segment(position, database, path)))
      case .rest:
        let range = index..<(index + restCount)
        if !isDocumentKnown, range.upperBound == count {
          wildcards.append(.unknownPath)
        } else {
          wildcards.append(
            .path(RulePath(segments: range.map { .text(RuleText(Self.segment($0, database, path))) })))
        }
      }
    }
    return true
  }

  /// Binds the wildcards for a query over all collections, or those with an id, at any depth below a document or the root.
  ///
  /// The pattern must cover documents below every parent: its start is known, its `**` begins there, and at most the
  /// collection and the document follow the `**`.
  func match(
    database: String, group id: String?, below parent: ResourcePath, into wildcards: inout [RuleValue]
  ) -> Bool {
    guard let restIndex, restIndex <= parent.count + 3, segments.count - restIndex <= 3 else { return false }
    wildcards.removeAll(keepingCapacity: true)
    for (index, segment) in segments.enumerated() {
      let fromEnd = segments.count - index
      let text: String? =
        index < restIndex ? Self.segment(index, database, parent) : fromEnd == 2 ? id : nil
      switch segment {
      case .literal(let literal):
        guard let text, text.hasSameUTF8(as: literal) else { return false }
      case .single: wildcards.append(text.map(RuleValue.text) ?? .constraint(.unbound))
      case .rest: wildcards.append(.unknownPath)
      }
    }
    return true
  }

  private static func segment(_ index: Int, _ database: String, _ path: ResourcePath) -> String {
    switch index {
    case 0: "databases"
    case 1: database
    case 2: "documents"
    default: path.segments[index - 3]
    }
  }
}

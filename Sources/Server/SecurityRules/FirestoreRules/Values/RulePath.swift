// A path of the rules language: its segments, its text, and the document that it names.

package import FirestoreModel

/// A path in rules, absolute from `/databases`, possibly with placeholders that `bind` replaces.
package struct RulePath: Hashable, Sendable {
  /// One segment of a path.
  enum Segment: Hashable, Sendable {
    /// Text, which may contain a slash if it was interpolated.
    case text(RuleText)
    /// A placeholder for one segment, or for any number of them.
    case placeholder(String, isRest: Bool)
  }

  /// The segments, from `databases` on.
  var segments: [Segment]

  init(segments: [Segment]) { self.segments = segments }

  /// The path of a document or collection.
  package init(database: String, path: ResourcePath) {
    segments = []
    segments.reserveCapacity(path.count + 3)
    segments.append(.text(RuleText("databases")))
    segments.append(.text(RuleText(database)))
    segments.append(.text(RuleText("documents")))
    for segment in path.segments { segments.append(.text(RuleText(segment))) }
  }

  /// The path of a document.
  package init(_ name: DocumentName) { self.init(database: name.database.database, path: name.path) }

  /// Whether the path contains a placeholder.
  var hasPlaceholders: Bool {
    segments.contains { if case .placeholder = $0 { true } else { false } }
  }

  /// The path as text: each segment after a slash.
  var text: RuleText {
    RuleText(
      segments.map { segment in
        switch segment {
        case .text(let text): "/" + text.string
        case .placeholder(let name, let isRest): "/{" + name + (isRest ? "=**}" : "}")
        }
      }.joined())
  }

  /// The document that the path names, or nil if it names none of `database`.
  func document(in database: String) -> ResourcePath? {
    guard segments.count >= 5, segments.count % 2 == 1, segments[0] == .text(RuleText("databases")),
      segments[1] == .text(RuleText(database)), segments[2] == .text(RuleText("documents"))
    else { return nil }
    var ids: [String] = []
    ids.reserveCapacity(segments.count - 3)
    for segment in segments[3...] {
      guard case .text(let text) = segment, text.isValid, !text.string.isEmpty else { return nil }
      ids.append(text.string)
    }
    return ResourcePath(ids)
  }

  /// Parses the text of `path(…)`. The leading slash may be missing.
  init(template text: String) throws(RuleFault) {
    guard !text.isEmpty else { throw .invalidPath }
    var parts = text.split(separator: "/", omittingEmptySubsequences: false)
    if parts.first?.isEmpty == true { parts.removeFirst() }
    segments = []
    for part in parts {
      guard !part.isEmpty else { throw .invalidPath }
      segments.append(try Self.segment(part))
    }
  }

  private static func segment(_ part: Substring) throws(RuleFault) -> Segment {
    guard part.hasPrefix("{") else { return .text(RuleText(String(part).percentDecoded)) }
    guard part.hasSuffix("}") else { throw .invalidPath }
    let inner = part.dropFirst().dropLast()
    let pieces = inner.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    guard let name = pieces.first, !name.isEmpty, !name.contains("{"), !name.contains("}") else {
      throw .invalidPath
    }
    return .placeholder(String(name), isRest: pieces.count == 2 && pieces[1] == "**")
  }
}

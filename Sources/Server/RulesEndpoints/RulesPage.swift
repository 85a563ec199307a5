// Pages of a list, by the parameters `pageSize` and `pageToken`.
//
// A token names the last item of its page. A page therefore continues correctly after items were added or removed.

import FirestoreModel
import JSON
import Ports

/// One page of a list.
struct RulesPage<Item> {
  private(set) var items: [Item]
  /// The token of the next page; nil for the last one.
  private(set) var nextToken: String?

  /// Maximum items of a page, and the number without a parameter, as in the hosted product.
  static var maximumSize: Int { 100 }
  static var defaultSize: Int { 10 }

  /// Takes a page from all items.
  /// - Parameter key: the text that identifies an item.
  /// - Throws: INVALID_ARGUMENT for malformed parameters, and for the token of an item that no longer exists.
  init(_ all: [Item], _ request: HTTPRequest, key: (Item) -> String) throws(FirestoreError) {
    let size = try Self.size(of: request)
    var rest = all[...]
    if let token = request.target["pageToken"], !token.isEmpty {
      let name = Base64.decode(token.utf8, .urlSafe).map { String(decoding: $0, as: UTF8.self) }
      guard let name, let index = all.firstIndex(where: { key($0) == name }) else {
        throw .invalidArgument("The page token is not valid any more.")
      }
      rest = all[(index + 1)...]
    }
    items = Array(rest.prefix(size))
    if rest.count > size, let last = items.last {
      nextToken = Base64.encode(Array(key(last).utf8), .urlSafe, padded: false)
    }
  }

  /// The size of a page.
  static func size(of request: HTTPRequest) throws(FirestoreError) -> Int {
    guard let text = request.target["pageSize"], !text.isEmpty else { return defaultSize }
    guard let size = Int(text), size >= 0 else { throw .invalidArgument("The page size must be a number.") }
    return size == 0 ? defaultSize : min(size, maximumSize)
  }
}

/// The filter of a list of releases: `name=PATTERN` or `rulesetName=PATTERN`, with `*` at the end for any text. Several
/// conditions are separated by spaces.
struct ReleaseFilter {
  private var names: [String] = []
  private var rulesets: [String] = []

  /// Parses a filter.
  /// - Throws: INVALID_ARGUMENT for another condition.
  init(_ text: String, project: String) throws(FirestoreError) {
    for condition in text.split(separator: " ") where condition != "AND" {
      let nameAndPattern = condition.split(separator: "=", maxSplits: 1)
      var pattern = nameAndPattern.count == 2 ? String(nameAndPattern[1]).trimmingQuotes : ""
      switch nameAndPattern.first {
      case "name"?:
        pattern.removePrefix("projects/\(project)/releases/")
        names.append(pattern)
      case "rulesetName"?, "ruleset_name"?:
        pattern.removePrefix("projects/\(project)/rulesets/")
        rulesets.append(pattern)
      default: throw .invalidArgument("Releases can be filtered by name and rulesetName.")
      }
    }
  }

  /// Whether a release fulfils all conditions.
  func accepts(_ name: String, _ ruleset: String) -> Bool {
    names.allSatisfy { Self.matches($0, name) } && rulesets.allSatisfy { Self.matches($0, ruleset) }
  }

  private static func matches(_ pattern: String, _ text: String) -> Bool {
    pattern.hasSuffix("*") ? text.hasPrefix(pattern.dropLast()) : text == pattern
  }
}

extension String {
  fileprivate var trimmingQuotes: String {
    count >= 2 && hasPrefix("\"") && hasSuffix("\"") ? String(dropFirst().dropLast()) : self
  }

  fileprivate mutating func removePrefix(_ prefix: String) {
    if hasPrefix(prefix) { removeFirst(prefix.count) }
  }
}

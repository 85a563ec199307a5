// Reads the links in e-mails with action codes. A link comes from outside the program: any text may be passed.

public import Foundation

/// The parts of a link with an action code.
open class ActionCodeURL: NSObject, @unchecked Sendable {
  // SAFETY: all properties are constants.
  /// The project's API key.
  public let apiKey: String?
  /// The operation that the code allows.
  public let operation: ActionCodeOperation
  /// The action code.
  public let code: String?
  /// The page that follows.
  public let continueURL: URL?
  /// The language of the e-mail.
  public let languageCode: String?

  /// Parses a link. Returns nil for a text that is not a URL or has no query.
  public init?(link: String) {
    guard let items = Self.query(of: link) else { return nil }
    apiKey = items["apiKey"]
    operation = ActionCodeOperation(mode: items["mode"] ?? "")
    code = items["oobCode"]
    continueURL = items["continueUrl"].flatMap { URL(string: $0) }
    languageCode = items["lang"] ?? items["languageCode"]
    super.init()
  }

  /// The code of a link that signs in; nil for any other text.
  static func signInCode(of link: String) -> String? {
    guard let url = ActionCodeURL(link: link), url.operation == .emailLink,
      let code = url.code, !code.isEmpty
    else { return nil }
    return code
  }

  /// The query of a link, or of the link within it: a hosted link carries the actual one as a parameter.
  private static func query(of link: String) -> [String: String]? {
    var link = link
    // A link contains at most one other link.
    for _ in 0..<3 {
      guard let items = URLComponents(string: link)?.queryItems else { return nil }
      let query = Dictionary(items.map { ($0.name, $0.value ?? "") }) { first, _ in first }
      guard query["oobCode"] == nil, let inner = query["link"] ?? query["deep_link_id"] else { return query }
      link = inner
    }
    return nil
  }
}

// Action code URLs: parses links in e-mails with action codes. The input may be any string, because links
// come from outside the program.

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
  /// The page that opens after the operation.
  public let continueURL: URL?
  /// The language of the e-mail.
  public let languageCode: String?

  /// Parses a link. Returns nil if the string is not a URL or has no query.
  public init?(link: String) {
    guard let items = Self.query(of: link) else { return nil }
    apiKey = items["apiKey"]
    operation = ActionCodeOperation(mode: items["mode"] ?? "")
    code = items["oobCode"]
    continueURL = items["continueUrl"].flatMap { URL(string: $0) }
    languageCode = items["lang"] ?? items["languageCode"]
    super.init()
  }

  /// The action code of a sign-in link; nil for any other string.
  static func signInCode(of link: String) -> String? {
    guard let url = ActionCodeURL(link: link), url.operation == .emailLink,
      let code = url.code, !code.isEmpty
    else { return nil }
    return code
  }

  /// The query of a link or of the link inside it. A hosted link contains the actual link as a parameter.
  private static func query(of link: String) -> [String: String]? {
    var link = link
    // Normally a link contains at most one other link. The limit bounds the work for a crafted link.
    for _ in 0..<3 {
      guard let items = URLComponents(string: link)?.queryItems else { return nil }
      let query = Dictionary(items.map { ($0.name, $0.value ?? "") }) { first, _ in first }
      guard query["oobCode"] == nil, let inner = query["link"] ?? query["deep_link_id"] else { return query }
      link = inner
    }
    return nil
  }
}

// Checks absolute URLs in request bodies, such as the page to which a link returns.

import Foundation

/// Checks URLs.
enum AbsoluteURL {
  /// The parts of an absolute URL with a scheme and a host; nil for any other string.
  static func parse(_ text: String) -> URLComponents? {
    guard let url = URLComponents(string: text), url.scheme?.isEmpty == false, url.host?.isEmpty == false
    else { return nil }
    return url
  }

  /// Whether a text is an absolute URL.
  static func isValid(_ text: String) -> Bool { parse(text) != nil }
}

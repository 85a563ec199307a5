// Tests action code URLs: their parts, links inside links, and strings that are not links.

import Foundation
import Testing

@testable import FirebaseAuth

@Suite("Action code links") struct ActionCodeURLTests {
  private let link =
    "http://127.0.0.1:9099/emulator/action?mode=signIn&lang=fr&oobCode=abc-_1&apiKey=key&continueUrl=https%3A%2F%2Fexample.org%2Fa%3Fb%3Dc"

  @Test("the parts of a link are parsed")
  func parts() throws {
    let url = try #require(ActionCodeURL(link: link))
    #expect(
      url.operation == .emailLink && url.code == "abc-_1" && url.apiKey == "key" && url.languageCode == "fr")
    #expect(url.continueURL?.absoluteString == "https://example.org/a?b=c")
  }

  @Test("a link inside a link is parsed")
  func nested() throws {
    var components = URLComponents()
    components.scheme = "https"
    components.host = "app.example.org"
    components.queryItems = [URLQueryItem(name: "link", value: link)]
    let outer = try #require(components.string)
    #expect(ActionCodeURL.signInCode(of: outer) == "abc-_1")
  }

  @Test(
    "each mode is converted to its operation",
    arguments: [
      ("resetPassword", ActionCodeOperation.passwordReset), ("verifyEmail", .verifyEmail),
      ("recoverEmail", .recoverEmail), ("signIn", .emailLink),
      ("verifyAndChangeEmail", .verifyAndChangeEmail),
      ("revertSecondFactorAddition", .revertSecondFactorAddition), ("other", .unknown),
    ])
  func modes(mode: String, operation: ActionCodeOperation) throws {
    let url = try #require(ActionCodeURL(link: "https://example.org/?mode=\(mode)&oobCode=c"))
    #expect(url.operation == operation)
  }

  @Test(
    "a string that is not a sign-in link is rejected without a trap",
    arguments: [
      "", "hello", "http://", "https://example.org/", "https://example.org/?mode=signIn",
      "https://example.org/?mode=signIn&oobCode=", "https://example.org/?mode=verifyEmail&oobCode=c",
      "https://example.org/?link=https%3A%2F%2Fexample.org", "http://[::1", "\u{0}",
    ])
  func notSignIn(text: String) async throws {
    #expect(ActionCodeURL.signInCode(of: text) == nil)
    let auth = Auth.auth(app: try makeApp())
    #expect(!auth.isSignIn(withEmailLink: text))
    #expect(
      await errorCode { _ = try await auth.signIn(withEmail: "a@b.c", link: text) } == .invalidActionCode)
  }
}

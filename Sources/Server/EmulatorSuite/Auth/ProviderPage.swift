// The page of identity providers, which the web SDK opens for sign-in in a popup or by redirect. This server
// has no fake provider, so the page recommends another way to sign in: a credential that the test makes.

import NIOCore
import NIOHTTP1
import Ports

/// The page of identity providers.
enum ProviderPage {
  /// The response that contains the page.
  static let response = HTTPResponse(
    status: .ok, headers: ["content-type": "text/html; charset=utf-8"], body: ByteBuffer(string: html))

  private static let html = """
    <!doctype html>
    <html lang="en">
    <meta charset="utf-8">
    <title>Sign-in with a provider is not available here</title>
    <style>body { font: 16px/1.5 sans-serif; margin: 3em auto; max-width: 40em; padding: 0 1em }</style>
    <h1>Sign-in in a popup or by redirect is not implemented</h1>
    <p>This emulator has no page of identity providers. Sign in with a credential instead, whose ID token may be a JSON
    text:</p>
    <pre>signInWithCredential(auth, GoogleAuthProvider.credential(
      '{"sub": "abc123", "email": "ada@example.com", "email_verified": true}'))</pre>
    </html>

    """
}

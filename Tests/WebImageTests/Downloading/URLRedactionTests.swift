import Testing

@testable import WebImage

@Suite("URLRedaction", .timeLimit(.minutes(5)))
struct URLMaskTests {
    @Test(
        "Passwords and signed values are masked, and nothing else",
        arguments: [
            ("https://me:pw@h/a.jpg", "https://me:***@h/a.jpg"), ("https://me:@h/", "https://me:@h/"),
            ("https://:pw@h/", "https://:***@h/"), ("https://me@h/", "https://me@h/"),
            ("https://me:p@q:r@h/", "https://me:***@h/"), ("https://h/a:b@c", "https://h/a:b@c"),
            ("https://h?x=a:b@c", "https://h?x=a:b@c"), ("https://me:pw@h", "https://me:***@h"),
            ("https://me:pw@h?sig=1#token=2", "https://me:***@h?sig=***#token=***"),
            ("https://proxy/http://me:pw@h/a", "https://proxy/http://me:***@h/a"),
            ("https://h/a?X-Amz-Signature=1", "https://h/a?X-Amz-Signature=***"),
            (
                "https://h/a?x-amz-credential=1&X-AMZ-SECURITY-TOKEN=2",
                "https://h/a?x-amz-credential=***&X-AMZ-SECURITY-TOKEN=***"
            ),
            ("https://h/a?X-Amz-Date=1&X-Amz-Expires=2", "https://h/a?X-Amz-Date=1&X-Amz-Expires=2"),
            (
                "https://h/a?X-Goog-Signature=1&X-Goog-Credential=2",
                "https://h/a?X-Goog-Signature=***&X-Goog-Credential=***"
            ),
            (
                "https://h/a?AWSAccessKeyId=1&Signature=2&Expires=3",
                "https://h/a?AWSAccessKeyId=***&Signature=***&Expires=3"
            ),
            ("https://h/a?Policy=1&Key-Pair-Id=2", "https://h/a?Policy=***&Key-Pair-Id=***"),
            ("https://h/a?sv=2020&sig=a%2Bb%3D&se=1", "https://h/a?sv=2020&sig=***&se=1"),
            ("https://h/a?SIG=1", "https://h/a?SIG=***"), ("https://h/a?%73%69%67=1", "https://h/a?%73%69%67=***"),
            ("https://h/a?%2573ig=1", "https://h/a?%2573ig=***"), ("https://h/a?sig", "https://h/a?sig"),
            ("https://h/a?sig=", "https://h/a?sig="), ("https://h/a?sig=***", "https://h/a?sig=***"),
            ("https://h/a?token=1;key=2", "https://h/a?token=***;key=***"),
            ("https://h/a?access_token=1", "https://h/a?access_token=***"),
            ("https://h/a?apikey=1", "https://h/a?apikey=***"),
            ("https://h/a?api-key=1&api_key=2", "https://h/a?api-key=***&api_key=***"),
            ("https://h/a?password=1&Passwd=2", "https://h/a?password=***&Passwd=***"),
            ("https://h/a?auth[token]=1", "https://h/a?auth[token]=***"),
            ("https://h/a?client_secret=1", "https://h/a?client_secret=***"),
            ("https://h/a?w=100&s=200&v=3", "https://h/a?w=100&s=200&v=3"),
            ("https://h/a?keyword=x", "https://h/a?keyword=x"),
            ("https://h/a?design=x&tokens=2", "https://h/a?design=x&tokens=2"),
            ("https://h/sig=1/a", "https://h/sig=1/a"), ("https://h/a?x=1&=2", "https://h/a?x=1&=2"),
            ("https://h/a?sig=a b c", "https://h/a?sig=***"), ("https://h/a?token=a?b", "https://h/a?token=***"),
            ("https://h/a?u=http://x/?sig=1", "https://h/a?u=http://x/?sig=***"),
            ("https://h/a?u=http%3A%2F%2Fx%2F%3Fsig%3D1", "https://h/a?u=***"),
            ("https://h/a?u=http%3A%2F%2Fme%3Apw%40x%2F", "https://h/a?u=***"),
            ("https://h/a?u=http%3A%2F%2Fx%2Fa.jpg", "https://h/a?u=http%3A%2F%2Fx%2Fa.jpg"),
            ("https://h/a?u=http%253A%252F%252Fx%252F%253Fsig%253D1", "https://h/a?u=***"),
            // The slash at which the inner host would end is in the secret behind it.
            ("https://h/;x://me:pw@;key=a/b;f@z/", "https://h/;x://me:***@z/"),
            ("", ""), ("no url", "no url"), ("https://h/ä?sig=ü", "https://h/ä?sig=***"),
        ])
    func urls(url: String, masked: String) {
        #expect(URLRedaction.url(url) == masked)
        #expect(URLRedaction.url(masked) == masked)
    }

    @Test(
        "In a sentence a URL ends at a blank, a quote or a bracket",
        arguments: [
            ("cannot read https://me:pw@h/a?sig=1: gone", "cannot read https://me:***@h/a?sig=*** gone"),
            ("'https://h/?token=1', line 2", "'https://h/?token=***', line 2"),
            ("<https://h/?a=1&key=2> and me@h", "<https://h/?a=1&key=***> and me@h"),
            ("what? key=1; sig = 2", "what? key=1; sig = 2"), ("at 12:41 me@h", "at 12:41 me@h"),
        ])
    func sentences(text: String, masked: String) { #expect(URLRedaction.text(text) == masked) }

    @Test("Something else may stand for each secret")
    func substitute() {
        let masked = URLRedaction.url("https://me:pw@h/?sig=ab&w=1") { "<\($0.count)>" }
        #expect(masked == "https://me:<2>@h/?sig=<2>&w=1")
    }
}

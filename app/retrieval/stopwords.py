"""Words that carry little meaning in a question, in normalised spelling."""

import re

_PERSIAN = """
از به با در بر برای تا که را رو و یا هم نیز یه یک این اون ان ها های می نمی است هست هستش نیست
بود باشد باشه شد شده میشه می‌شود میشود نمیشه شود بشه شدن کرد کرده کردن کنم کنیم کنید کند کنه کن
میکنم میکنه می‌کنم می‌کند می‌کنه میکند چه چی چیه چیست چطور چطوری چگونه چجوری کجا کجاست کی کدام
کدوم چرا ایا اگر اگه ولی اما پس باید نباید من ما تو شما او خود خودم خودش همه هر هیچ چند
دیگه دیگر بعد قبل الان وقتی موقع روی توی داخل مثل بدون بین هنوز فقط خیلی لطفا سلام ممنون میخوام
می‌خوام میخواهم می‌خواهم خواستم دارم داره دارد داریم دارند ندارم نداره ندارد داشته داشت بده بدم
بگو بگید میتونم می‌تونم میتوانم می‌توانم میتوان می‌توان توان تونم نمیتونم راه راهی کار چیکار
""".split()
_ENGLISH = """
a an the and or of in on at to for from by with is are was were be been do does did can could
should would will how what which when where why who i my me we our you your it its this that
these those there not no any some if then than as about into need want have has had get am so
""".split()

# Of Chinese and Japanese only what hardly ever is a part of another word.
_UNSPACED = """
    为什么 為什麼 怎么办 怎么样 怎么 怎麼 如何 什么 什麼 哪里 哪裡 哪儿 哪个 多少 可以 请问 能不能
    的 了 吗 嗎 呢 是 我 在
    どうやって どうすれば どのように ください ですか ますか ました ません です ます どこ なぜ いつ
    何 の は が を か
""".split()

STOPWORDS = frozenset(_PERSIAN + _ENGLISH + _UNSPACED)
_UNSPACED_STOPWORD = re.compile(f"({'|'.join(_UNSPACED)})")


def parted_at_stopwords(word: str) -> list[str]:
    """Cut a run of Chinese or Japanese before and after each stop word; others stay whole."""
    return [piece for piece in _UNSPACED_STOPWORD.split(word) if piece]


# The little words of Persian typed in Latin letters; they also tell that a query is Finglish.
FINGLISH = frozenset(
    """
    chetor chetori chejoori chejori chegoone che chi cheraa chera koja kojast kodom kodoom ki baraye
    barae vase ro ra az dar too tooye ye yek ine hast nist mishe nemishe mishavad shod shode nashod
    mikham mikhaam mikhastam mikonam mikone mikonim konam konim kone kard karde kardan dare daram
    darim nadare nadaram bayad age agar vali ham hame har dige bad ghabl rooye roo khodam man ma
    inke chand ta ke ba va ya begam bedam bezanam bezaram midam mide mizane mizanam mikoneh nemikone
    nemitonam nemitoonam mitonam mitoonam mitoone miad nemiad miyad nemiyad lotfan salam chikar
    """.split()
)
# Those that are English as well: `bad gateway` and `too many requests` are no Persian.
ALSO_ENGLISH = frozenset("age bad dare ham man too vase".split())

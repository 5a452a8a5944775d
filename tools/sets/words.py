"""Words of each language that the makers exchange. A pair (a, b) exchanges a for b and b for a."""

# Negations that can be taken out of a sentence, so that it says the opposite: pattern and replacement.
NEGATION = {
    "en": [(r"\b(is|are|was|were|do|does|did|will|would|should|must|may|can|could|has|have) not\b", r"\1"), (r"\bcannot\b", "can"), (r"\bwithout\b", "with"), (r"\bnever\b", "always"),
           (r"\b(is|are|will|should|must|can) (?!not\b|no\b)(?=[a-z])", r"\1 not "), (r"\bwith\b", "without"), (r"\bdisabled\b", "enabled"), (r"\benabled\b", "disabled")],
    "de": [(r"\bnicht ", ""), (r"\bohne\b", "mit"), (r"\bkein(e[nrms]?)?\b", r"ein\1"), (r"\b(ist|wird|werden|sind|kann|muss) (?!nicht)", r"\1 nicht "), (r"\bnie\b", "immer")],
    "fr": [(r"\bn'(est|a|ont|était) pas\b", r"\1"), (r"\bne (\w+) pas\b", r"\1"), (r"\bsans\b", "avec"), (r"\b(doit|peut|sont|sera) ", r"ne \1 pas "), (r"\best ", "n'est pas ")],
    "es": [(r"\b[Nn]o (?=(es|está|se|puede|son|debe|hay)\b)", ""), (r"\bsin\b", "con"), (r"\b(es|está|puede|son|debe) ", r"no \1 "), (r"\bnunca\b", "siempre")],
    "it": [(r"\b[Nn]on (?=\w)", ""), (r"\bsenza\b", "con"), (r"\b(è|può|sono|deve|viene) ", r"non \1 ")],
    "pt": [(r"\b[Nn]ão (?=\w)", ""), (r"\bsem\b", "com"), (r"\b(é|pode|são|deve|está) ", r"não \1 ")],
    "ru": [(r"\b[Нн]е (?=\w)", ""), (r"\bбез\b", "с"), (r"\b(может|должен|является|будет|используется|могут) ", r"не \1 ")],
    "uk": [(r"\b[Нн]е (?=\w)", ""), (r"\bбез\b", "з"), (r"\b(може|має|буде|можна|слід) ", r"не \1 ")],
    "pl": [(r"\b[Nn]ie (?=\w)", ""), (r"\bbez\b", "z"), (r"\b(jest|może|są|należy|można|zostanie) ", r"nie \1 ")],
    "el": [(r"\b(δεν|Δεν|μην) (?=\w)", ""), (r"\bχωρίς\b", "με"), (r"\b(είναι|μπορεί|έχει|μπορείτε) ", r"δεν \1 ")],
    "ar": [(r"(?<!\w)لا (?=\w)", ""), (r"(?<!\w)(لم|لن) (?=\w)", ""), (r"(?<!\w)(يمكن|يجب|يكون) ", r"لا \1 "), (r"(?<!\w)غير ", "")],
    "hi": [(r" नहीं(?= )", ""), (r" (है|हैं)(?=[।.\s])", r" नहीं \1"), (r"(?<!\S)बिना ", "")],
    "zh": [("不能", "能"), ("不可以", "可以"), ("不会", "会"), ("不會", "會"), ("不是", "是"), ("没有", "有"), ("沒有", "有"), ("(?<!不)可以", "不可以"), ("(?<!不)是(?=[一-鿿])", "不是"), ("必须", "不必"), ("必須", "不必"), ("禁用", "启用"), ("无法", "能够")],
    "ja": [("できません", "できます"), ("ありません", "あります"), ("しません", "します"), ("されない", "される"), ("しない", "する"), ("できます", "できません"), ("されます", "されません"), ("あります", "ありません"), ("します", "しません"), ("される", "されない"), ("(?<=で)ある。", "はない。")],
    "ko": [("할 수 없", "할 수 있"), ("할 수 있", "할 수 없"), ("하지 않습니다", "합니다"), ("합니다", "하지 않습니다"), ("없습니다", "있습니다"), ("있습니다", "없습니다"), ("아닙니다", "입니다")],
    "th": [("ไม่สามารถ", "สามารถ"), ("ไม่มี", "มี"), ("ไม่ได้", "ได้"), ("(?<!ไม่)สามารถ", "ไม่สามารถ"), ("ไม่", ""), ("ย่อมมี", "ย่อมไม่มี")],
    "vi": [(r"\b[Kk]hông (?=\w)", ""), (r"\b(có thể|được|phải) ", r"không \1 "), (r"\b[Cc]hưa ", "")],
    "tr": [(r"\bdeğildir\b", "dir"), (r"\byok\b", "var"), (r"\bvar\b", "yok")],
    "nl": [(r"\bniet ", ""), (r"\bzonder\b", "met"), (r"\bgeen\b", "een"), (r"\b(is|wordt|kan|moet|zijn) ", r"\1 niet ")],
    "cs": [(r"\bnení\b", "je"), (r"\bbez\b", "s"), (r"\bje ", "není "), (r"\bnelze\b", "lze"), (r"\blze\b", "nelze")],
    "sv": [(r"\binte ", ""), (r"\butan\b", "med"), (r"\b(är|kan|ska|måste) ", r"\1 inte ")],
    "da": [(r"\bikke ", ""), (r"\buden\b", "med"), (r"\b(er|kan|skal|må) ", r"\1 ikke ")],
    "hu": [(r"\bnem ", ""), (r"\bnélkül\b", "mellett")],
    "bg": [(r"\bне (?=\w)", ""), (r"\bбез\b", "с")],
    "ro": [(r"\bnu (?=\w)", ""), (r"\bfără\b", "cu")],
}

COLOURS = {
    "en": "red blue green yellow black white brown grey", "de": "rot blau grün gelb schwarz lila braun grau", "fr": "rouge bleu vert jaune noir blanc marron gris", "es": "rojo azul verde amarillo negro blanco marrón gris",
    "it": "rosso blu verde giallo nero bianco marrone grigio", "pt": "vermelho azul verde amarelo preto branco castanho cinzento", "ru": "красный синий зелёный жёлтый чёрный белый коричневый серый",
    "uk": "червоний синій зелений жовтий чорний білий коричневий сірий", "pl": "czerwony niebieski zielony żółty czarny biały brązowy szary", "el": "κόκκινο μπλε πράσινο κίτρινο μαύρο λευκό καφέ γκρι",
    "ar": "أحمر أزرق أخضر أصفر أسود أبيض بني رمادي", "hi": "लाल नीला हरा पीला काला सफ़ेद भूरा धूसर", "zh_CN": "红色 蓝色 绿色 黄色 黑色 白色 棕色 灰色", "zh_TW": "紅色 藍色 綠色 黃色 黑色 白色 棕色 灰色", "ja": "赤 青 緑 黄色 黒 白 茶色 灰色",
    "ko": "빨간색 파란색 녹색 노란색 검은색 흰색 갈색 회색", "th": "สีแดง สีน้ำเงิน สีเขียว สีเหลือง สีดำ สีขาว สีน้ำตาล สีเทา", "vi": "màu_đỏ màu_xanh màu_cam màu_vàng màu_đen màu_trắng màu_nâu màu_xám", "tr": "kırmızı mavi yeşil sarı siyah beyaz kahverengi gri",
}

SIZES = {  # words of size in real texts
    "en": "small large medium|short long|narrow wide|minimum maximum|first last|left right|top bottom|before after|higher lower|thin thick|big little", "de": "klein groß|kleine große|kleiner größer|kurz lang|kurze lange|links rechts|vor nach|erste letzte|oben unten",
    "fr": "petit grand|petite grande|court long|gauche droite|premier dernier|avant après|minimum maximum|haut bas", "es": "pequeño grande|corto largo|izquierda derecha|primero último|antes después|mínimo máximo|arriba abajo",
    "it": "piccolo grande|corto lungo|sinistra destra|primo ultimo|prima dopo|minimo massimo", "pt": "pequeno grande|curto longo|esquerda direita|primeiro último|antes depois|mínimo máximo", "ru": "маленький большой|короткий длинный|слева справа|первый последний|до после|минимальный максимальный|малый большой",
    "uk": "малий великий|короткий довгий|ліворуч праворуч|перший останній|мінімальний максимальний", "pl": "mały duży|krótki długi|lewo prawo|pierwszy ostatni|przed po|minimalny maksymalny", "el": "μικρό μεγάλο|αριστερά δεξιά|πρώτο τελευταίο|πριν μετά|ελάχιστο μέγιστο",
    "zh": "最小 最大|左侧 右侧|左邊 右邊|左边 右边|向左 向右|以上 以下|之前 之后|之前 之後|较大 较小|較大 較小|顶部 底部|頂部 底部|第一 最后|增加 减少|增加 減少", "ja": "小さい 大きい|小さな 大きな|短い 長い|最小 最大|以上 以下|左側 右側|前に 後に|上に 下に|最初 最後|増加 減少", "ko": "작은 큰|짧은 긴|왼쪽 오른쪽|위 아래|최소 최대|처음 마지막", "th": "เล็ก ใหญ่|สั้น ยาว|ซ้าย ขวา|บน ล่าง|ก่อน หลัง|ต่ำสุด สูงสุด",
    "vi": "nhỏ lớn|ngắn dài|trái phải|trên dưới|trước sau|tối_thiểu tối_đa", "ar": "صغير كبير|قصير طويل|يسار يمين|قبل بعد|أعلى أسفل|الأدنى الأقصى", "hi": "छोटा बड़ा|छोटे बड़े|बाएँ दाएँ|ऊपर नीचे|पहले बाद|न्यूनतम अधिकतम", "nl": "klein groot|kort lang|links rechts|eerste laatste|voor na",
    "tr": "küçük büyük|kısa uzun|sol sağ|ilk son|önce sonra|en_az en_çok", "cs": "malý velký|krátký dlouhý|vlevo vpravo|první poslední|před po", "sv": "liten stor|kort lång|vänster höger|första sista|före efter", "da": "lille stor|kort lang|venstre højre|første sidste|før efter",
}

# Units that follow a number, by groups whose members mean different things.
UNITS = ["mg g kg µg", "ml l cl", "mm cm m km", "kB MB GB TB KB KiB MiB GiB bytes bits", "ms s min h", "seconds minutes hours days weeks months years", "Sekunden Minuten Stunden Tage Wochen Monate Jahre", "secondes minutes heures jours semaines mois", "segundos minutos horas días meses años",
         "secondi minuti ore giorni mesi anni", "segundos minutos horas dias meses anos", "секунд минут часов дней месяцев лет", "секунд хвилин годин днів", "sekund minut godzin dni", "€ $ £ ¥", "°C °F", "kHz MHz GHz Hz", "kbit Mbit Gbit", "% ‰", "秒 分钟 小时 天 年", "秒 分 時間 日 年", "초 분 시간 일 년", "วินาที นาที ชั่วโมง วัน ปี",
         "giây phút giờ ngày năm", "ثانية دقيقة ساعة يوما", "सेकंड मिनट घंटे दिन", "px pt em", "Ω kΩ MΩ", "V kV mV", "W kW MW", "dpi ppi", "字节 位", "バイト ビット", "байт бит"]

MONTHS = {
    "en": "January February March April June July August September October November December", "de": "Januar Februar März April Juni Juli August September Oktober November Dezember", "fr": "janvier février mars avril juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril junio julio agosto septiembre octubre noviembre diciembre", "it": "gennaio febbraio marzo aprile giugno luglio agosto settembre ottobre novembre dicembre", "pt": "janeiro fevereiro março abril junho julho agosto setembro outubro novembro dezembro",
    "ru": "января февраля марта апреля июня июля августа сентября октября ноября декабря", "uk": "січня лютого березня квітня червня липня серпня вересня жовтня листопада грудня", "pl": "stycznia lutego marca kwietnia czerwca lipca sierpnia września października listopada grudnia",
    "el": "Ιανουαρίου Φεβρουαρίου Μαρτίου Απριλίου Ιουνίου Ιουλίου Αυγούστου Σεπτεμβρίου Οκτωβρίου Νοεμβρίου Δεκεμβρίου", "ar": "يناير فبراير مارس أبريل يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر", "hi": "जनवरी फ़रवरी मार्च अप्रैल जून जुलाई अगस्त सितंबर अक्टूबर नवंबर दिसंबर",
    "th": "มกราคม กุมภาพันธ์ มีนาคม เมษายน มิถุนายน กรกฎาคม สิงหาคม กันยายน ตุลาคม พฤศจิกายน ธันวาคม", "tr": "Ocak Şubat Mart Nisan Haziran Temmuz Ağustos Eylül Ekim Kasım Aralık", "nl": "januari februari maart april juni juli augustus september oktober november december",
}

PLACES = {
    "en": "Berlin Paris London Madrid Rome Vienna Tokyo Boston Sydney Toronto", "de": "Berlin Paris London Madrid Rom Wien Hamburg München Köln Zürich", "fr": "Berlin Paris Londres Madrid Rome Vienne Lyon Marseille Nantes Bruxelles", "es": "Berlín París Londres Madrid Roma Viena Sevilla Bogotá Lima Valencia",
    "it": "Berlino Parigi Londra Madrid Roma Vienna Milano Torino Napoli Genova", "pt": "Berlim Paris Londres Madri Roma Viena Lisboa Porto Recife Salvador", "ru": "Берлин Париж Лондон Мадрид Рим Вена Москва Казань Омск Самара", "uk": "Берлін Париж Лондон Мадрид Рим Відень Київ Львів Одеса Харків",
    "pl": "Berlin Paryż Londyn Madryt Rzym Wiedeń Warszawa Kraków Gdańsk Łódź", "el": "Βερολίνο Παρίσι Λονδίνο Μαδρίτη Ρώμη Βιέννη Αθήνα Πάτρα Βόλος Χανιά", "ar": "برلين باريس لندن مدريد روما فيينا القاهرة بيروت بغداد الرياض", "hi": "बर्लिन पेरिस लंदन मैड्रिड लिस्बन वियना दिल्ली मुंबई पटना जयपुर",
    "zh_CN": "柏林 巴黎 伦敦 马德里 里斯本 维也纳 北京 上海 广州 成都", "zh_TW": "柏林 巴黎 倫敦 馬德里 里斯本 維也納 臺北 高雄 新竹 花蓮", "ja": "ベルリン パリ ロンドン マドリード ローマ ウィーン 東京 大阪 京都 札幌", "ko": "베를린 파리 런던 마드리드 로마 프라하 서울 부산 대구 인천",
    "th": "เบอร์ลิน ปารีส ลอนดอน มาดริด ลิสบอน เวียนนา กรุงเทพ เชียงใหม่ ภูเก็ต ขอนแก่น", "vi": "Berlin Paris Luân_Đôn Madrid Roma Viên Hà_Nội Huế Đà_Nẵng Cần_Thơ", "tr": "Berlin Paris Londra Madrid Roma Viyana Ankara İzmir Bursa Konya",
}

NAMES = {
    "en": "Anna_Miller John_Carter Mary_Evans Peter_Hill Susan_Baker", "de": "Anna_Müller Jens_Krüger Petra_Vogt Uwe_Lang Sabine_Koch", "fr": "Anne_Moreau Jean_Petit Claire_Roux Luc_Garnier Marie_Blanc", "es": "Ana_García José_Romero Lucía_Vega Pedro_Molina Carmen_Ruiz", "it": "Anna_Rossi Luca_Conti Giulia_Ferri Marco_Greco Sara_Villa",
    "pt": "Ana_Souza João_Lima Clara_Rocha Pedro_Dias Marta_Cruz", "ru": "Анна_Петрова Иван_Смирнов Ольга_Орлова Пётр_Зайцев Мария_Белова", "uk": "Ганна_Коваль Іван_Мельник Ольга_Бондар Петро_Шевчук Марія_Лисенко", "pl": "Anna_Nowak Jan_Kowalski Maria_Wójcik Piotr_Zając Ewa_Król", "el": "Άννα_Παππά Γιώργος_Νικολάου Μαρία_Δήμου Πέτρος_Λάμπρου Ελένη_Βλάχου",
    "ar": "أحمد_سالم ليلى_حسن يوسف_كريم مريم_عادل خالد_منصور", "hi": "अनिल_शर्मा सीता_वर्मा राहुल_गुप्ता मीना_सिंह विजय_कुमार", "zh_CN": "王伟 李娜 张强 刘洋 陈静", "zh_TW": "王偉 李娜 張強 劉洋 陳靜", "ja": "佐藤花子 鈴木一郎 田中健 山本恵 中村翔", "ko": "김민수 이영희 박지훈 최수진 정하늘",
    "th": "สมชาย_ใจดี มาลี_สุขใจ วิชัย_ทองดี อรุณ_แสงทอง สุดา_ศรีสุข", "vi": "Nguyễn_An Trần_Bình Lê_Hoa Phạm_Minh Hoàng_Lan", "tr": "Ayşe_Yılmaz Mehmet_Kaya Fatma_Demir Ali_Çelik Zeynep_Şahin",
}

# Lines around a text: date, by-line, counters, price, menu.
FRAMES = {
    "en": ("Published {d}", "By {p}", "{n} views, {m} comments", "Price: ${v}", "Home News Sport Culture Travel Contact Archive Shop Help About Jobs Weather Video Blog"), "de": ("Veröffentlicht am {d}", "Von {p}", "{n} Aufrufe, {m} Kommentare", "Preis: {v} €", "Startseite Nachrichten Sport Kultur Reise Kontakt Archiv Laden Hilfe Impressum Stellen Wetter Video Blog"),
    "fr": ("Publié le {d}", "Par {p}", "{n} vues, {m} commentaires", "Prix : {v} €", "Accueil Actualités Sport Culture Voyage Contact Archives Boutique Aide Emploi Météo Vidéo Blog"), "es": ("Publicado el {d}", "Por {p}", "{n} visitas, {m} comentarios", "Precio: {v} €", "Inicio Noticias Deportes Cultura Viajes Contacto Archivo Tienda Ayuda Empleo Tiempo Vídeo Blog"),
    "it": ("Pubblicato il {d}", "Di {p}", "{n} visite, {m} commenti", "Prezzo: {v} €", "Home Notizie Sport Cultura Viaggi Contatti Archivio Negozio Aiuto Lavoro Meteo Video Blog"), "pt": ("Publicado em {d}", "Por {p}", "{n} visitas, {m} comentários", "Preço: R$ {v}", "Início Notícias Esportes Cultura Viagens Contato Arquivo Loja Ajuda Empregos Tempo Vídeo Blog"),
    "ru": ("Опубликовано {d}", "Автор: {p}", "{n} просмотров, {m} комментариев", "Цена: {v} руб.", "Главная Новости Спорт Культура Туризм Контакты Архив Магазин Помощь Вакансии Погода Видео Блог"), "uk": ("Опубліковано {d}", "Автор: {p}", "{n} переглядів, {m} коментарів", "Ціна: {v} грн", "Головна Новини Спорт Культура Подорожі Контакти Архів Крамниця Довідка Вакансії Погода Відео Блог"),
    "pl": ("Opublikowano {d}", "Autor: {p}", "{n} wyświetleń, {m} komentarzy", "Cena: {v} zł", "Start Wiadomości Sport Kultura Podróże Kontakt Archiwum Sklep Pomoc Praca Pogoda Wideo Blog"), "el": ("Δημοσίευση {d}", "Του/της {p}", "{n} προβολές, {m} σχόλια", "Τιμή: {v} €", "Αρχική Ειδήσεις Αθλητικά Πολιτισμός Ταξίδια Επικοινωνία Αρχείο Κατάστημα Βοήθεια Καιρός Βίντεο"),
    "ar": ("نشر في {d}", "بقلم {p}", "{n} مشاهدة، {m} تعليق", "السعر: {v} ريال", "الرئيسية الأخبار الرياضة الثقافة السفر اتصل الأرشيف المتجر المساعدة الوظائف الطقس فيديو"), "hi": ("प्रकाशित {d}", "लेखक {p}", "{n} बार देखा गया, {m} टिप्पणियाँ", "मूल्य: ₹{v}", "मुखपृष्ठ समाचार खेल संस्कृति यात्रा संपर्क पुरालेख दुकान सहायता नौकरी मौसम वीडियो"),
    "zh_CN": ("发布于 {d}", "作者：{p}", "{n} 次浏览，{m} 条评论", "价格：¥{v}", "首页 新闻 体育 文化 旅游 联系 存档 商店 帮助 招聘 天气 视频"), "zh_TW": ("發佈於 {d}", "作者：{p}", "{n} 次瀏覽，{m} 則評論", "價格：NT${v}", "首頁 新聞 體育 文化 旅遊 聯絡 存檔 商店 幫助 徵才 天氣 影片"), "ja": ("公開日 {d}", "文・{p}", "閲覧 {n} 回、コメント {m} 件", "価格：{v} 円", "ホーム ニュース スポーツ 文化 旅行 連絡先 過去記事 お店 ヘルプ 求人 天気 動画"),
    "ko": ("게시일 {d}", "{p} 기자", "조회 {n}회, 댓글 {m}개", "가격: {v}원", "홈 뉴스 스포츠 문화 여행 연락처 보관함 상점 도움말 채용 날씨 동영상"), "th": ("เผยแพร่เมื่อ {d}", "โดย {p}", "เข้าชม {n} ครั้ง ความเห็น {m} รายการ", "ราคา {v} บาท", "หน้าแรก ข่าว กีฬา วัฒนธรรม ท่องเที่ยว ติดต่อ คลังข่าว ร้านค้า ช่วยเหลือ งาน อากาศ วิดีโอ"),
    "vi": ("Đăng ngày {d}", "Tác giả {p}", "{n} lượt xem, {m} bình luận", "Giá: {v} đ", "Trang_chủ Tin_tức Thể_thao Văn_hóa Du_lịch Liên_hệ Lưu_trữ Cửa_hàng Trợ_giúp Việc_làm Thời_tiết Video"), "tr": ("Yayın tarihi {d}", "Yazan {p}", "{n} görüntülenme, {m} yorum", "Fiyat: {v} TL", "Anasayfa Haberler Spor Kültür Gezi İletişim Arşiv Mağaza Yardım İlanlar Hava Video"),
}

# Short records. {c} colour, {z} size in letters, {n} number, {u} unit, {p} person, {l} place, {d} date, {s} sign, {v} price.
RECORDS = {
    "en": {"offer": "{g}, {c}, size {z}, {v} {e}, delivered from {l}", "dose": "Take {n} {u} of {g2} {m} times a day, {t} food", "flat": "{m} room flat, {n} m² in {l}, rent {v} {e}, free from {d}, {t} balcony", "headline": "{p} wins vote in {l} by {n} to {m} on {d}", "weather": "{l}, {d}: {s}{n} °C, wind {m} {k}"},
    "de": {"offer": "{g}, {c}, Größe {z}, {v} {e}, Versand aus {l}", "dose": "{m} mal täglich {n} {u} {g2} {t} Essen einnehmen", "flat": "{m}-Zimmer-Wohnung, {n} m² in {l}, Miete {v} {e}, frei ab {d}, {t} Balkon", "headline": "{p} gewinnt Wahl in {l} mit {n} zu {m} Stimmen am {d}", "weather": "{l}, {d}: {s}{n} °C, Wind {m} {k}"},
    "fr": {"offer": "{g}, {c}, taille {z}, {v} {e}, envoi de {l}", "dose": "Prendre {n} {u} de {g2} {m} fois par jour {t} repas", "flat": "Appartement {m} pièces, {n} m² à {l}, loyer {v} {e}, libre le {d}, {t} balcon", "headline": "{p} gagne le vote à {l} par {n} voix contre {m} le {d}", "weather": "{l}, {d} : {s}{n} °C, vent {m} {k}"},
    "es": {"offer": "{g}, {c}, talla {z}, {v} {e}, envío desde {l}", "dose": "Tomar {n} {u} de {g2} {m} veces al día {t} comida", "flat": "Piso de {m} habitaciones, {n} m² en {l}, alquiler {v} {e}, libre el {d}, {t} balcón", "headline": "{p} gana la votación en {l} por {n} a {m} el {d}", "weather": "{l}, {d}: {s}{n} °C, viento {m} {k}"},
    "it": {"offer": "{g}, {c}, taglia {z}, {v} {e}, spedito da {l}", "dose": "Prendere {n} {u} di {g2} {m} volte al giorno {t} cibo", "flat": "Appartamento di {m} locali, {n} m² a {l}, affitto {v} {e}, libero dal {d}, {t} balcone", "headline": "{p} vince il voto a {l} per {n} a {m} il {d}", "weather": "{l}, {d}: {s}{n} °C, vento {m} {k}"},
    "pt": {"offer": "{g}, {c}, tamanho {z}, {v} {e}, envio de {l}", "dose": "Tomar {n} {u} de {g2} {m} vezes ao dia {t} comida", "flat": "Apartamento de {m} quartos, {n} m² em {l}, aluguel {v} {e}, livre em {d}, {t} varanda", "headline": "{p} vence votação em {l} por {n} a {m} em {d}", "weather": "{l}, {d}: {s}{n} °C, vento {m} {k}"},
    "ru": {"offer": "{g}, {c}, размер {z}, {v} {e}, доставка: {l}", "dose": "Принимать {n} {u} {g2} {m} раза в день {t} еды", "flat": "Квартира, комнат: {m}, {n} м², {l}, аренда {v} {e}, свободна с {d}, {t} балкона", "headline": "{p} побеждает на выборах ({l}): {n} против {m}, {d}", "weather": "{l}, {d}: {s}{n} °C, ветер {m} {k}"},
    "uk": {"offer": "{g}, {c}, розмір {z}, {v} {e}, доставка: {l}", "dose": "Приймати {n} {u} {g2} {m} рази на день {t} їжі", "flat": "Квартира, кімнат: {m}, {n} м², {l}, оренда {v} {e}, вільна з {d}, {t} балкона", "headline": "{p} перемагає на виборах ({l}): {n} проти {m}, {d}", "weather": "{l}, {d}: {s}{n} °C, вітер {m} {k}"},
    "pl": {"offer": "{g}, {c}, rozmiar {z}, {v} {e}, wysyłka: {l}", "dose": "Przyjmować {n} {u} {g2} {m} razy dziennie {t} jedzenia", "flat": "Mieszkanie, pokoi: {m}, {n} m², {l}, czynsz {v} {e}, wolne od {d}, {t} balkonu", "headline": "{p} wygrywa głosowanie ({l}) {n} do {m}, {d}", "weather": "{l}, {d}: {s}{n} °C, wiatr {m} {k}"},
    "el": {"offer": "{g}, {c}, μέγεθος {z}, {v} {e}, αποστολή από {l}", "dose": "Λάβετε {n} {u} {g2} {m} φορές την ημέρα {t} φαγητό", "flat": "Διαμέρισμα {m} δωματίων, {n} m², {l}, ενοίκιο {v} {e}, ελεύθερο από {d}, {t} μπαλκόνι", "headline": "{p} κερδίζει την ψηφοφορία ({l}) με {n} έναντι {m} στις {d}", "weather": "{l}, {d}: {s}{n} °C, άνεμος {m} {k}"},
    "ar": {"offer": "{g}، {c}، مقاس {z}، {v} {e}، الشحن من {l}", "dose": "تناول {n} {u} من {g2} {m} مرات يوميا {t} الطعام", "flat": "شقة {m} غرف، {n} متر مربع في {l}، الإيجار {v} {e}، متاحة من {d}، {t} شرفة", "headline": "{p} يفوز بالتصويت في {l} بنتيجة {n} مقابل {m} في {d}", "weather": "{l}، {d}: {s}{n} درجة، الرياح {m} {k}"},
    "hi": {"offer": "{g}, {c}, आकार {z}, {v} {e}, {l} से भेजा जाएगा", "dose": "{g2} {n} {u} दिन में {m} बार भोजन {t} लें", "flat": "{l} में {m} कमरों का फ्लैट, {n} वर्ग मीटर, किराया {v} {e}, {d} से खाली, बालकनी {t}", "headline": "{l} में {d} को {p} ने {n} के मुकाबले {m} से मतदान जीता", "weather": "{l}, {d}: {s}{n} °C, हवा {m} {k}"},
    "zh_CN": {"offer": "{g}，{c}，尺码{z}，{v}{e}，从{l}发货", "dose": "{g2}每日{m}次，每次{n}{u}，饭{t}服用", "flat": "{l}{m}室公寓，{n}平方米，租金{v}{e}，{d}起可入住，{t}阳台", "headline": "{p}{d}在{l}以{n}比{m}赢得投票", "weather": "{l}，{d}：{s}{n}℃，风速{m}{k}"},
    "zh_TW": {"offer": "{g}，{c}，尺碼{z}，{v}{e}，由{l}出貨", "dose": "{g2}每日{m}次，每次{n}{u}，飯{t}服用", "flat": "{l}{m}房公寓，{n}平方公尺，租金{v}{e}，{d}起可入住，{t}陽臺", "headline": "{p}{d}在{l}以{n}比{m}贏得投票", "weather": "{l}，{d}：{s}{n}℃，風速{m}{k}"},
    "ja": {"offer": "{g}、{c}、サイズ{z}、{v}{e}、{l}から発送", "dose": "{g2}を1日{m}回、1回{n}{u}、食{t}に服用", "flat": "{l}の{m}部屋のマンション、{n}平米、家賃{v}{e}、{d}から入居可、バルコニー{t}", "headline": "{p}、{d}に{l}の投票で{n}対{m}で勝利", "weather": "{l}、{d}：{s}{n}℃、風速{m}{k}"},
    "ko": {"offer": "{g}, {c}, 사이즈 {z}, {v} {e}, {l}에서 발송", "dose": "{g2} 하루 {m}회 {n} {u}씩 식{t} 복용", "flat": "{l} 방 {m}개 아파트, {n}제곱미터, 월세 {v} {e}, {d}부터 입주, 발코니 {t}", "headline": "{p}, {d} {l} 투표에서 {n} 대 {m}으로 승리", "weather": "{l}, {d}: {s}{n}℃, 바람 {m} {k}"},
    "th": {"offer": "{g} {c} ขนาด {z} ราคา {v} {e} ส่งจาก{l}", "dose": "รับประทาน{g2} {n} {u} วันละ {m} ครั้ง {t}อาหาร", "flat": "ห้องชุด {m} ห้อง {n} ตารางเมตร ที่{l} ค่าเช่า {v} {e} ว่างตั้งแต่ {d} {t}ระเบียง", "headline": "{p} ชนะการลงคะแนนที่{l} {n} ต่อ {m} เมื่อ {d}", "weather": "{l} {d}: {s}{n} °C ลม {m} {k}"},
    "vi": {"offer": "{g}, {c}, cỡ {z}, {v} {e}, gửi từ {l}", "dose": "Uống {n} {u} {g2} {m} lần mỗi ngày {t} khi ăn", "flat": "Căn hộ {m} phòng, {n} m² ở {l}, giá thuê {v} {e}, trống từ {d}, {t} ban công", "headline": "{p} thắng cuộc bỏ phiếu ở {l} với {n} so với {m} ngày {d}", "weather": "{l}, {d}: {s}{n} °C, gió {m} {k}"},
    "tr": {"offer": "{g}, {c}, beden {z}, {v} {e}, {l} çıkışlı", "dose": "{g2} günde {m} kez {n} {u}, yemek {t} alın", "flat": "{l} içinde {m} odalı daire, {n} m², kira {v} {e}, {d} tarihinde boş, balkon {t}", "headline": "{p}, {d} günü {l} oylamasını {n} - {m} kazandı", "weather": "{l}, {d}: {s}{n} °C, rüzgâr {m} {k}"},
}
# With and without, or before and after: the negation of doses and flats.
WITH = {"en": ("with", "without"), "de": ("mit", "ohne"), "fr": ("avec", "sans"), "es": ("con", "sin"), "it": ("con", "senza"), "pt": ("com", "sem"), "ru": ("во время", "без"), "uk": ("під час", "без"), "pl": ("podczas", "bez"), "el": ("με", "χωρίς"), "ar": ("مع", "بدون"), "hi": ("के साथ", "के बिना"),
        "zh_CN": ("前", "后"), "zh_TW": ("前", "後"), "ja": ("前", "後"), "ko": ("전", "후"), "th": ("ก่อน", "หลัง"), "vi": ("trước", "sau"), "tr": ("öncesi", "sonrası")}
WITH_BALCONY = {"ru": ("есть", "без"), "uk": ("є", "без"), "pl": ("z opcją", "bez"), "zh_CN": ("带", "无"), "zh_TW": ("有", "無"), "ja": ("あり", "なし"), "ko": ("있음", "없음"), "th": ("มี", "ไม่มี"), "vi": ("có", "không có"), "tr": ("var", "yok"), "hi": ("है", "नहीं है")}
GOODS = {
    "en": "Cotton_shirt Wool_coat Garden_chair Desk_lamp Rain_jacket Bicycle_helmet Running_shoes Coffee_mug", "de": "Baumwollhemd Wollmantel Gartenstuhl Schreibtischlampe Regenjacke Fahrradhelm Laufschuhe Kaffeebecher", "fr": "Chemise_en_coton Manteau_en_laine Chaise_de_jardin Lampe_de_bureau Veste_de_pluie Casque_de_vélo Tasse_à_café",
    "es": "Camisa_de_algodón Abrigo_de_lana Silla_de_jardín Lámpara_de_mesa Chaqueta_impermeable Casco_de_bicicleta Taza_de_café", "it": "Camicia_di_cotone Cappotto_di_lana Sedia_da_giardino Lampada_da_tavolo Giacca_impermeabile Casco_da_bici Tazza_da_caffè", "pt": "Camisa_de_algodão Casaco_de_lã Cadeira_de_jardim Luminária_de_mesa Capa_de_chuva Capacete_de_bicicleta Caneca",
    "ru": "Хлопковая_рубашка Шерстяное_пальто Садовый_стул Настольная_лампа Дождевик Велосипедный_шлем Кроссовки Кружка", "uk": "Бавовняна_сорочка Вовняне_пальто Садовий_стілець Настільна_лампа Дощовик Велошолом Кросівки Кухоль", "pl": "Koszula_bawełniana Płaszcz_wełniany Krzesło_ogrodowe Lampa_biurkowa Kurtka Kask_rowerowy Kubek", "el": "Βαμβακερό_πουκάμισο Μάλλινο_παλτό Καρέκλα_κήπου Φωτιστικό_γραφείου Αδιάβροχο Κράνος_ποδηλάτου Κούπα",
    "ar": "قميص_قطني معطف_صوف كرسي_حديقة مصباح_مكتب سترة_مطر خوذة_دراجة كوب_قهوة", "hi": "सूती_कमीज़ ऊनी_कोट बगीचे_की_कुर्सी मेज़_लैंप बरसाती साइकिल_हेलमेट कॉफ़ी_मग", "zh_CN": "棉衬衫 羊毛大衣 花园椅 台灯 雨衣 自行车头盔 跑鞋 咖啡杯", "zh_TW": "棉襯衫 羊毛大衣 花園椅 檯燈 雨衣 自行車頭盔 跑鞋 咖啡杯", "ja": "綿シャツ ウールコート ガーデンチェア 卓上ランプ レインコート 自転車ヘルメット コーヒーマグ", "ko": "면_셔츠 울_코트 정원_의자 탁상_램프 우비 자전거_헬멧 커피_머그",
    "th": "เสื้อเชิ้ตผ้าฝ้าย เสื้อโค้ทขนสัตว์ เก้าอี้สวน โคมไฟตั้งโต๊ะ เสื้อกันฝน หมวกจักรยาน แก้วกาแฟ", "vi": "Áo_sơ_mi_cotton Áo_khoác_len Ghế_vườn Đèn_bàn Áo_mưa Mũ_xe_đạp Cốc_cà_phê", "tr": "Pamuklu_gömlek Yün_palto Bahçe_sandalyesi Masa_lambası Yağmurluk Bisiklet_kaskı Kahve_kupası",
}
MEDICINES = {"ru": "ибупрофена парацетамола аспирина амоксициллина", "uk": "ібупрофену парацетамолу аспірину амоксициліну", "el": "ιβουπροφαίνη παρακεταμόλη ασπιρίνη αμοξικιλλίνη", "ar": "إيبوبروفين باراسيتامول أسبرين أموكسيسيلين", "hi": "आइबुप्रोफ़ेन पैरासिटामोल एस्पिरिन एमोक्सिसिलिन", "zh_CN": "布洛芬 对乙酰氨基酚 阿司匹林 阿莫西林", "zh_TW": "布洛芬 乙醯胺酚 阿斯匹靈 阿莫西林",
             "ja": "イブプロフェン アセトアミノフェン アスピリン アモキシシリン", "ko": "이부프로펜 파라세타몰 아스피린 아목시실린", "th": "ไอบูโพรเฟน พาราเซตามอล แอสไพริน อะม็อกซีซิลลิน", "": "ibuprofen paracetamol aspirin amoxicillin metformin"}
CURRENCIES = "EUR USD GBP CHF JPY"
SPEEDS = "km/h m/s mph kn"
